"""Measures cells: `measure` makes one repetition of them, `merging` joins a cell's repetitions."""
