"""The conventions that findings can name: a file per group."""
