"""Computes what the hardware should reach."""
