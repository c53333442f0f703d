"""Measures cells. `measure` visits cells, `measurement` is a cell with its buffers, and `pool`
provides the buffers. `sampler` takes samples, and `merging` joins visits. `telemetry` and
`background_load` record what else happened during a visit."""
