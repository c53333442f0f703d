"""Vendors' own tools are asked for a limited time; their text is kept without what is secret."""

import json
import os
import sys

import pytest

from linkgauge.machine.capture import MANIFEST, capture, read_machine, read_manifest
from linkgauge.machine.secrets import REMOVED
from linkgauge.machine.tools import ask
from linkgauge.machine.tree import ROOT
from machine_kit import seen, through_a_file

HOST = os.uname().nodename
UUID = "4c4c4544-0042-3010-8054-b4c04f4d3233"


def test_tools_are_asked_for_a_limited_time():
    commands = (
        ("sh", "-c", "echo out; echo err >&2; exit 1"),
        ("sh", "-c", "echo begun; exec sleep 60"),
        ("no-such-tool-anywhere", "-v"),
    )
    (failed, late, absent), files = ask(commands, seconds=1)
    assert (failed.exit, files[failed.file], files[failed.errors]) == (1, b"out\n", b"err\n")
    assert (late.exit, late.problem, files[late.file]) == (
        None,
        "still running after 1 s",
        b"begun\n",
    )
    assert (absent.problem, absent.file, absent.errors) == ("not installed", None, None)


NVIDIA_SMI = f"""\
GPU 00000000:1B:00.0
    Product Name                       : NVIDIA H200
    Serial Number                      : 1650522011
    GPU UUID                           : GPU-{UUID}
    GPU PDI                            : 0x145c8e416b389d3e
    VBIOS Version                      : 96.00.A5.00.03
    Platform Info
        Chassis Serial Number          : 1820322000
        GPU Fabric GUID                : 0x93cf0d02e8f53f15
    Fabric
        ClusterUUID                    : {UUID}
    Processes
        Process ID                     : 2203
            Type                       : C
            Name                       : python train.py --api-key=hunter2
"""
LSPCI = """\
1b:00.0 3D controller: NVIDIA Corporation GH100 [H200 SXM 141GB] (rev a1)
\tCapabilities: [100 v1] Device Serial Number 48-b0-2d-ff-ff-aa-bb-cc
\tCapabilities: [120 v1] Device Serial Number 00-00-00-00-00-00-00-00
"""


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """Vendors' tools that say what such tools do, and no others."""
    for name, text in (
        ("nvidia-smi", NVIDIA_SMI),
        ("lspci", LSPCI),
        ("rocm-smi", "GPU[0]\t\t: Serial Number: 692231000131\nGPU[0]\t\t: Card: MI300X\n"),
        ("rbln-stat", f"| RBLN-CA25 | {UUID} | 0000:05:00.0 |\n"),
        ("uname", f"Linux {HOST} 6.8.0\n"),
        ("ibstat", "CA 'mlx5_0'\n\tNode GUID: 0x0c42a10300000007\n"),
    ):
        place = tmp_path / "bin" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{text}END\n")
        place.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def test_vendors_tools_are_kept_without_secrets_and_if_asked_without_names(stand_ins, tmp_path):
    machine = seen(ROOT)
    plain = through_a_file(capture(ROOT, machine), tmp_path)
    hidden = capture(ROOT, machine, anonymous=True)
    told, quiet = (
        "".join(tree.files[tool.file].decode() for tool in read_manifest(tree).tools if tool.file)
        for tree in (plain, hidden)
    )
    kept = ("Product Name                       : NVIDIA H200", "1B:00.0", "96.00.A5.00.03",
            "GH100 [H200 SXM 141GB]", "MI300X", "RBLN-CA25", "0000:05:00.0", "6.8.0", "mlx5_0",
            f"Name                       : {REMOVED}", "00-00-00-00-00-00-00-00")  # fmt: skip
    names = ("1650522011", UUID, "145c8e416b389d3e", "1820322000", "93cf0d02e8f53f15", "aa-bb-cc",
             "692231000131", "0c42a103")  # fmt: skip
    names += () if HOST == "localhost" else (f"Linux {HOST} ",)
    assert [text for text in kept if text not in told or text not in quiet] == []
    assert [text for text in names if text not in told or text in quiet] == []
    assert "hunter2" not in told
    asked = {tool.command: tool for tool in read_manifest(plain).tools}
    assert asked["xpu-smi discovery"].problem == "not installed"
    assert asked["nvidia-smi topo -m"].file == "linkgauge/tools/nvidia-smi_topo_-m.txt"


def test_what_tools_said_is_kept_of_a_captured_machine(tmp_path):
    command = (sys.executable, "-c", "print('told')")
    first = through_a_file(capture(ROOT, seen(ROOT), commands=(command,)), tmp_path)
    again = capture(first, read_machine(first), anonymous=True)
    manifest = json.loads(again.files[MANIFEST])
    assert manifest["anonymized"] is True
    (tool,) = manifest["tools"]
    assert again.files[tool["file"]] == b"told\n"
