"""Finds the parts of a machine that are at fault: slow parts with `slow_parts`, `slow_model` and
`pooled`, unsteady ones with `scatter` and `stalls`, and parts whose cells failed with `causes`.
`cases` holds the cells in the form that these modules use."""
