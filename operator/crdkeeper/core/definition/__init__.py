"""What a CustomResourceDefinition says."""
