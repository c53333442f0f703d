"""Measures AI workloads on devices that torch supports, and inference servers under load."""
