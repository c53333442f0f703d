"""Is a node as healthy as it was: some minutes of measuring, and one answer."""
