"""Runs as files: the `journal`, whose records come to a `run_state` or, for hours, a `soak_state`;
run.json (`stored`) and samples.bin (`packed`). `runs` reads them, `resume` goes on with one,
`again` measures some of its cells again.
"""
