"""Which parts of a machine are at fault: for `slow_parts` by `slow_model` and `pooled`, for
unsteady ones by `scatter` and `stalls`, for cells that failed by `causes`; `cases` are the cells
as these see them.
"""
