"""Says what hardware should reach, before anything is measured."""

from linkgauge.registry import Room

ROOM = Room("expect", commands={"expect": f"{__name__}.command:expect"})
