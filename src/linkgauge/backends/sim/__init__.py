"""Backend `sim`: a simulated machine (docs/simulation.md). Bytes really move, in simulated time;
transfers share links, and faults can be scheduled."""
