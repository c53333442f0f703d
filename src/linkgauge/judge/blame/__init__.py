"""Finds the parts of a machine that are at fault. Slow parts are found by `slow_parts`,
`slow_model` and `pooled`, unsteady parts by `scatter` and `stalls`. `causes` finds parts whose
cells failed. `cases` holds the cells in the form that these modules use."""
