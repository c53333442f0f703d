"""Short probes of every link now and then, and a line when one gets worse."""

from linkgauge.registry import Room

ROOM = Room("watch", commands={"watch": f"{__name__}.command:watch"})
