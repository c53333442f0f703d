"""What Prometheus scrapes: the last results of each label, and what devices report now."""
