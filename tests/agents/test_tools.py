"""What `linkgauge mcp` offers, asked by the official library's client."""

import asyncio
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import linkgauge

mcp = pytest.importorskip("mcp")
from linkgauge.rooms.mcp.tools import make_server

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/judge/public/p53-sixteen-at-10-of-25/log.txt"
SIMULATED = {"size": "64M", "samples": 6, "machine": "dgx-h200-8"}


def call(tool, **arguments):
    async def called():
        async with mcp.Client(make_server()) as client:
            return await client.call_tool(tool, arguments)

    result = asyncio.run(called())
    text = result.content[0].text
    return text if result.is_error else json.loads(text)


def test_each_tool_only_reads_and_says_what_it_takes():
    async def listed():
        async with mcp.Client(make_server()) as client:
            return (await client.list_tools()).tools

    tools = {one.name: one for one in asyncio.run(listed())}
    assert tools.keys() == {"judge", "expect", "doctor", "show", "devices"}
    for one in tools.values():
        assert one.annotations.read_only_hint
        assert one.annotations.open_world_hint is False
        assert all(f"`{name}`" in one.description for name in one.input_schema["properties"])


def test_doctor_names_parts_and_remedies():
    found = call("doctor", machine="vm-degraded")
    assert found["schema"] == "linkgauge.findings/1"
    assert found["verdict"] == "fail"
    assert any(one["remedy"] and one["subject"] for one in found["findings"])


def test_expect_has_the_arithmetic():
    found = call("expect", what="8 x H100 SXM")
    assert found["schema"] == "linkgauge.expect/1"
    assert all(one["because"] for one in found["figures"])
    slower = call("expect", what="8 x H100 SXM", change="pcie=4x16")
    assert slower["figures"] != found["figures"]


def test_devices_describes_the_machine():
    assert len(call("devices", machine="ppu-8")["devices"]["sim"]) == 8


def test_judge_reads_the_output_of_another_tool():
    found = call("judge", files=[str(LOG)], machine="8 x H100 SXM")
    assert found["schema"] == "linkgauge.summary/1"
    assert len(found["cells"]) + sum(found["cells_left_out"].values()) > 0


def test_show_has_what_is_wrong_and_counts_the_rest(tmp_path):
    run = linkgauge.run(
        "host_to_device_memcpy_ce", **SIMULATED, faults=["slow sim:3 rate=50%"], out=tmp_path
    )
    found = call("show", run=str(run.folder))
    assert {one["column"] for one in found["cells"]} == {"3"}
    assert found["cells_left_out"] == {"ok": 7}
    assert len(call("show", run=str(run.folder), every_cell=True)["cells"]) == 8
    assert call("doctor", run=str(run.folder))["verdict"] == found["verdict"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("doctor", {"root": "/nowhere.tgz"}, "/nowhere.tgz"),
        ("doctor", {"root": "x", "machine": "ppu-8"}, "one of"),
        ("show", {"run": "/nowhere"}, "/nowhere"),
        ("judge", {"files": ["/nowhere"]}, "cannot read /nowhere"),
        ("expect", {"what": "8 x Nothing"}, "Nothing"),
    ],
)
def test_what_is_wrong_with_a_call_is_said_without_a_trace(tool, arguments, said):
    answer = call(tool, **arguments)
    assert said in answer
    assert "Traceback" not in answer


@pytest.mark.parametrize("words", ["import linkgauge", "--help", "mcp --help", "exporter --help"])
def test_nobody_else_loads_the_libraries(words):
    run = "" if words.startswith("import") else (
        f"import sys; sys.argv = ['linkgauge', *'{words}'.split()]\n"
        "from linkgauge.__main__ import main\n"
        "try: main()\nexcept SystemExit: pass\n"
    )  # fmt: skip
    code = f"import linkgauge\n{run}import sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "linkgauge" in loaded
    assert loaded.isdisjoint({"mcp", "mcp_types", "opentelemetry", "pydantic", "prometheus_client"})


def test_an_installation_without_extras_needs_neither():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {one.partition(">")[0] for one in project["dependencies"]}
    assert names == {"click", "defusedxml", "jinja2", "msgspec", "pyyaml", "rich", "SQLAlchemy"}


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with pytest.raises(linkgauge.MissingPackage, match=r"linkgauge\[mcp\]"):
        make_server()
