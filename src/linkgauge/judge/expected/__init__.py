"""Computes the figures that the hardware should reach."""
