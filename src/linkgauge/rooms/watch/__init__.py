"""Short probes of every link at intervals, and a line whenever a link gets worse."""

from linkgauge.registry import Room

ROOM = Room("watch", commands={"watch": f"{__name__}.command:watch"})
