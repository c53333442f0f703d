"""Finds the parts of a machine that are at fault. `table` has the cells with their losses, and the
parts that they use. `slow_parts` asks `explain` for the fewest parts that explain most, and
`leftover` for what all cells of a part show together. `unsteady` finds parts that stall or scatter,
`causes` those whose cells failed. `limits` has the numbers that decide."""
