"""Describes a machine from a run, and simulates the machine of a kept run (`--machine RUN`)."""
