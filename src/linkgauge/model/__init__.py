"""Plain values, without I/O: `transfer`, its `notation` and `memory`; `hardware/`, a machine;
`operations/`, what cells do; `documents/`, what is written; `stats/`.
"""
