"""Exports metrics for Prometheus: the latest results of each label, and the state of devices."""
