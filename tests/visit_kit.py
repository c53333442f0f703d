"""A cell as a run shows it, from what a visit of it gave."""

from linkgauge.engine.merging import merge
from linkgauge.model.settings import Settings

FIXED = Settings((1,), samples=1)


def whole(*visits, settings=FIXED):
    """One cell from its visits; nothing is alike."""
    return merge([visits], settings)[0].cell
