"""Stores runs in a journal (`journal`), in run.json (`stored`) and in samples.bin (`packed`)."""
