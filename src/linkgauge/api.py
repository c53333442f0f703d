"""The Python API, which `linkgauge` itself exports: the room `notebook`."""

from linkgauge.rooms.notebook.api import MeasuredRun, load, load_all, measure

__all__ = ["MeasuredRun", "load", "load_all", "measure"]
