"""Exports metrics for Prometheus: the latest results of each label, and the current state of
devices."""
