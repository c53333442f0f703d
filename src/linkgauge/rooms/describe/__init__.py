"""Describes the machine of a kept run, so that `--machine RUN` can simulate it."""
