"""Compares runs. `run_comparison` compares sides by `side_tests`. `gate`, `baseline`, `trends` and
`configurations` use these comparisons for different purposes. `likeness` decides whether runs can
be compared."""
