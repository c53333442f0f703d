#!/usr/bin/env python3
"""Turns the lab's hardware.yml files into what CI takes: labels of nodes, and a job for each node.

    lab.py labels lab/gpu07.yml                    the labels, to register the node with
    lab.py matrix lab/*.yml [--where gpu=*H200*]   a matrix of GitHub Actions, as JSON
    lab.py nodes lab/*.yml [--where labels=*x*]    a line for each node: its name, Jenkins' label
    lab.py check lab/gpu07.yml found.yml           fails if the node is no longer as described

The files are those that `linkgauge devices --yaml` writes. `labels:` is a key of yours: a list of
words between commas. Needs PyYAML alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

FIXED = ("host", "architecture", "cpu", "gpu", "gpu_count", "nvidia_driver", "driver", "kernel")
"""What a node reports of itself: a change of it is news."""


def read(path: Path) -> dict[str, str]:
    """The file's keys and values, those that are not empty. Exits with 2 if it has others."""
    try:
        # Strings alone, as safe as safe_load, which would take 2025.10 for 2025.1.
        values = yaml.load(path.read_text("utf-8"), yaml.BaseLoader)  # noqa: S506
    except (OSError, ValueError, yaml.YAMLError) as error:
        sys.exit(refused(f"cannot read {path}: {' '.join(str(error).split())}"))
    plain = isinstance(values, dict) and all(isinstance(value, str) for value in values.values())
    if not plain:
        sys.exit(refused(f"{path}: give lines of key: value, as `linkgauge devices --yaml` does"))
    return {key: value for key, value in values.items() if value}


def refused(what: str) -> int:
    """Says what is wrong with the input; the exit code."""
    print(f"lab.py: {what}", file=sys.stderr)
    return 2


def word(text: str) -> str:
    """A label of it: Jenkins reads spaces, quotes, `&`, `|` and `!` as an expression."""
    return re.sub(r"[^a-z0-9_.]+", "-", text.lower()).strip("-.")


def labels(values: dict[str, str]) -> list[str]:
    """`host-gpu07`, `arch-x86_64`, `gpu-nvidia-h200`, `gpus-8`, `driver-580`, and those by hand."""
    driver = values.get("nvidia_driver", values.get("driver", "")).partition(".")[0]
    kinds = {
        "host": values.get("host", ""),
        "arch": values.get("architecture", ""),
        "gpus": values.get("gpu_count", ""),
        "driver": driver,
    }
    models = (("gpu", model) for model in values.get("gpu", "").split(","))
    own = (word(text) for text in values.get("labels", "").split(","))
    found = [f"{kind}-{word(text)}" for kind, text in (*kinds.items(), *models) if word(text)]
    return ["linkgauge", *found, *filter(None, own)]


def name(path: Path) -> str:
    """A node is called as its file. Exits with 2 if that is no plain name: it becomes a path."""
    if path.stem != word(path.stem):
        sys.exit(refused(f"{path}: name the file in small letters, digits, '-', '_' and '.'"))
    return path.stem


def chosen(paths: list[Path], where: str) -> list[tuple[str, dict[str, str]]]:
    """The nodes whose value fits, by name; all if nothing is asked for."""
    key, _, pattern = where.partition("=")
    nodes = [(name(path), read(path)) for path in paths]
    return [
        (node, values)
        for node, values in nodes
        if not where or fnmatchcase(values.get(key, "").lower(), pattern.lower())
    ]


def one_of(values: dict[str, str]) -> list[str]:
    """The labels that no other node has: of a node that has a name, that one."""
    return ["linkgauge", f"host-{word(values['host'])}"] if "host" in values else labels(values)


def differences(described: dict[str, str], found: dict[str, str]) -> list[str]:
    """What the node reports otherwise than its file. What the file leaves empty may be anything."""
    return [
        f"{key} is {found.get(key, 'not reported')}, described as {described[key]}"
        for key in FIXED
        if key in described and found.get(key) != described[key]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["labels", "matrix", "nodes", "check"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--where", default="", metavar="KEY=PATTERN")
    given = parser.parse_args()
    if given.where and "=" not in given.where:
        return refused(f"--where {given.where}: give KEY=PATTERN, such as gpu=*H200*")
    if given.what == "check":
        if len(given.files) != 2:
            return refused("check takes two files: the node's, and what `devices --yaml` wrote")
        changed = differences(*map(read, given.files))
        for line in changed:
            print(f"{given.files[0]}: {line}")
        return 1 if changed else 0
    nodes = chosen(given.files, given.where)
    if not nodes:
        return refused(f"no node with {given.where}")
    if given.what == "labels":
        for _, values in nodes:
            print(" ".join(labels(values)))
    elif given.what == "nodes":
        for node, values in nodes:
            print(node, " && ".join(one_of(values)), sep="\t")
    else:
        jobs = [
            {"node": node, "labels": ["self-hosted", *one_of(values)]} for node, values in nodes
        ]
        print(json.dumps({"include": jobs}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
