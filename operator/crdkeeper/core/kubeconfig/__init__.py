"""What kubectl makes of kubeconfigs and of its environment, where the libraries that read them differ."""
