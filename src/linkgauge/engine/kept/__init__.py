"""Stores runs in files. `journal` writes records, from which `run_state` builds the run (for runs
of hours, `soak_state`). `stored` writes run.json, and `packed` writes samples.bin. `runs` reads all
of them, `resume` continues an interrupted run, and `again` measures some cells of a run again."""
