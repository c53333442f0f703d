"""A machine as plain values: its parts, how they are joined, and what was read of it."""
