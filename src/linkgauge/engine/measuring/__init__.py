"""How a cell is measured: buffers, samples, visits, and what else happened meanwhile."""
