"""A real Prometheus (Debian's package) that scrapes an exporter, and what it knows."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from exporter_kit import program
from linkgauge.rooms.exporter.server import LOOPBACK

RULES = Path(__file__).parents[1] / "contrib" / "linkgauge.rules.yml"
DEADLINE = 60
"""Seconds: what a test waits for takes a few, on a loaded machine more."""


class Prometheus:
    """Its API, which may not listen yet."""

    def __init__(self, process, port, folder):
        self._process, self._port, self._folder = process, port, folder

    def __call__(self, path, **asked):
        """What the API answers, once it is not empty."""
        until = time.monotonic() + DEADLINE
        while not (found := self.now(path, **asked)) and time.monotonic() < until:
            time.sleep(0.1)
        return found

    def now(self, path, **asked):
        """What it answers now; nothing where it is not ready."""
        assert self._process.poll() is None, (self._folder / "log").read_text()
        url = f"http://{LOOPBACK}:{self._port}/api/v1/{path}?{urlencode(asked)}"
        try:
            with urlopen(url, timeout=10) as answer:
                data = json.load(answer)["data"]
        except HTTPError as error:
            assert error.code == 503, error.read().decode()
            return []
        except OSError:
            return []
        return data["result"] if isinstance(data, dict) else data


@contextmanager
def prometheus(folder, target, interval="500ms"):
    """Scrapes this address, and evaluates the shipped rules, at this interval."""
    with socket.create_server((LOOPBACK, 0)) as free:
        port = free.getsockname()[1]
    (folder / "prometheus.yml").write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": interval, "evaluation_interval": interval},
                "rule_files": [str(RULES)],
                "scrape_configs": [
                    {"job_name": "linkgauge", "static_configs": [{"targets": [str(target)]}]}
                ],
            }
        )
    )
    options = (
        f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={LOOPBACK}:{port}",
    )  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program("prometheus"), *options], stderr=log, stdout=log, cwd=folder,
            env={**os.environ, "GOMAXPROCS": "2"},
        )  # fmt: skip
    try:
        yield Prometheus(process, port, folder)
    finally:
        process.terminate()
        process.wait(timeout=20)
