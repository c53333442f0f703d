"""Measures cells. `measure` measures cells in one repetition (round of samples). `measurement` is a
cell with its buffers, and `pool` provides the buffers. `sampler` takes samples, and `merging` joins
the repetitions of a cell. `telemetry` and `background_load` record what else happened during a
repetition."""
