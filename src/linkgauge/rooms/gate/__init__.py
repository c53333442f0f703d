"""Runs held against each other: compared, made into a baseline, and refused if they have lost."""
