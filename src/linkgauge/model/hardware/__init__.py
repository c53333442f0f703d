"""A machine as plain values: its parts, how they are joined, and its inventory."""
