"""What is installed: the manifests, the rights they grant, what an uninstall leaves."""
