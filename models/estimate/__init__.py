"""What a model would be on a machine: memory and speed."""
