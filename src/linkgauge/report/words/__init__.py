"""Sentences about figures, findings and runs."""
