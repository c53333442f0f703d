"""Compares runs, for the gate, baselines, trends, fleets and configurations."""
