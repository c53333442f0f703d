"""Judges figures: what to reach, which cells do not reach it, and which part is at fault."""
