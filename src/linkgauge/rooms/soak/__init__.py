"""How a run goes that repeats its benchmarks for hours."""
