"""Judges figures of other tools, from their output and from texts that describe the machine."""
