"""Taking a version of a CRD out of service: the evidence of each step, and the step that is due."""
