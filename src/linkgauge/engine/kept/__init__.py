"""Keeps runs: `journal`, run.json (`stored`) and samples.bin (`packed`), which `runs` reads."""
