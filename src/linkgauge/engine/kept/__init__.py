"""Runs as files: the journal, run.json, samples.bin; reading, resuming and repeating them."""
