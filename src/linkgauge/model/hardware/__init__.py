"""The description of a machine as plain values: its parts, their connections, and its inventory."""
