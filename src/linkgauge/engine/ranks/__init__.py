"""A run that several processes measure together, each a rank."""
