"""The data types of linkgauge, without I/O. `transfer`, `notation` and `memory` describe what is
measured; `hardware/` describes a machine, `operations/` what cells do, `documents/` what is
written. `stats/` has the statistics."""
