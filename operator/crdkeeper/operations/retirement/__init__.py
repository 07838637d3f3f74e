"""What operator and command line share to take a version out of service."""
