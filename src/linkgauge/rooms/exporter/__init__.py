"""What Prometheus scrapes: the last results of each label, and what devices report now."""

from linkgauge.registry import Room

ROOM = Room("exporter", commands={"exporter": f"{__name__}.command:exporter"})
