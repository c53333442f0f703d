"""Turns a request into a run.

`request` (what is asked for) goes to a `session`, which makes a `plan`; the `controller` hands its
cells to worker processes (`workers/`), or to ranks (`ranks/`), which measure them (`measuring/`),
and keeps what they return (`kept/`).
"""
