"""Runs beside each other. `run_comparison` compares sides by `side_tests`; `gate`, `baseline`,
`trends` and `configurations` are its policies; `likeness` says whether runs can be compared at
all.
"""
