"""Finds the parts of a machine that are at fault. `table` has the cells with their losses, and the
parts that they use. `slow_parts` asks `explain` for the fewest parts that explain most, and
`leftover` for what all cells of a part show together. The same search finds the parts that stall or
scatter (`unsteady`), those whose cells failed, and those that only earlier runs show to be slow
(`lonely`). `limits` has the numbers that decide."""
