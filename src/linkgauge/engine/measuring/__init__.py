"""Measures cells: `measure` makes a repetition of `measurement`s, `merging` joins repetitions."""
