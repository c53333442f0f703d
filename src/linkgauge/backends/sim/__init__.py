"""The backend `sim`: a simulated machine (docs/simulation.md). It really moves bytes, but in
simulated time. Transfers share links, and faults can be scheduled."""
