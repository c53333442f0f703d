"""Exports metrics for Prometheus: each label's latest results, and the state of devices."""
