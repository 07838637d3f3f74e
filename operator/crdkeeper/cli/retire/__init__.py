"""`crdkeeper retire`: takes a version of a CRD out of service without the operator, and shows retirements."""
