"""AI workloads on devices that torch knows, and load on a running server."""
