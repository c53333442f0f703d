"""The same benchmarks under several settings, in rounds, and what differs."""
