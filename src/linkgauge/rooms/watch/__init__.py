"""Measures every link briefly at intervals (probes), and reports links that get worse."""
