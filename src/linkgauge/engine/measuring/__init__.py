"""The measuring of a cell: `measure` visits cells, `measurement` is a cell with its buffers (from
`pool`), `sampler` takes its samples, and `merging` joins visits; `telemetry` and `background_load`
record what else happened meanwhile.
"""
