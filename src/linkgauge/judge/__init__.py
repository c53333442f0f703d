"""Judges figures: the expected figures, the cells that miss them, and the parts at fault."""
