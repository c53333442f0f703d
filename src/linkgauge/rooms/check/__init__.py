"""Checks whether a node is healthy: a short measurement, and one answer."""

from linkgauge.registry import Room

ROOM = Room("check", commands={"check": f"{__name__}.command:check"})
