"""What the hardware should do: figures expected of cells, with their arithmetic."""
