"""What is installed: the manifests, the permissions that they grant, what an uninstall leaves."""
