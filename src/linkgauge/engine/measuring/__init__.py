"""Measures a cell: buffers, samples, visits, and what else happened meanwhile."""
