"""Exports the Python API to the package `linkgauge`. The code is in the room `notebook`."""

from linkgauge.rooms.notebook.api import MeasuredRun, load, load_all, measure

__all__ = ["MeasuredRun", "load", "load_all", "measure"]
