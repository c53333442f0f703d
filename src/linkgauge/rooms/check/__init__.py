"""Checks whether a node is healthy: a short measurement, and one answer."""
