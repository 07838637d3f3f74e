"""What a changed CRD would do to those who use it, said while the change is being admitted."""
