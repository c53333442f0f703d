"""Describes the machine of a stored run, so that `--machine RUN` can simulate it."""
