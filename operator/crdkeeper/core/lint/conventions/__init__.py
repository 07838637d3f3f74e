"""The conventions that findings can name: one file per group."""
