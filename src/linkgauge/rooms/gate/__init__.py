"""Compares runs, makes baselines of them, and fails if figures got worse (the gate)."""
