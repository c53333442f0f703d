"""Makes sentences about figures, findings and runs."""
