"""Compares runs. Shows differences, makes a baseline of several runs, and fails if figures got
worse (the gate)."""
