"""Finds the parts at fault: `explain` searches the fewest that explain a `table` of losses."""
