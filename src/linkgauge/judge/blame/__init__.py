"""Finds the parts at fault: `explain` finds the fewest parts that explain the losses in `table`."""
