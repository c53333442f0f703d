"""Starts worker processes, and exchanges messages with them and with ranks."""
