"""What cells do: operations as values."""
