"""How a cell is measured: `measure` visits cells, `measurement` is one with its buffers (`pool`),
the `sampler` takes its samples, `merging` joins visits; `telemetry` and `background_load` tell
what else happened meanwhile.
"""
