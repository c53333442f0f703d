"""Measures AI workloads on devices that torch supports, and load on a running server."""
