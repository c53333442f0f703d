"""Turns a request for measurements into a run.

A `request` says what to measure. A `session` makes a `plan` of it. The `controller` hands the
plan's cells to worker processes (`workers/`) or to ranks (`ranks/`), which measure the cells
(`measuring/`). The controller then keeps the results in files (`kept/`)."""
