"""What numbers mean: what the hardware should do, and why it does not."""
