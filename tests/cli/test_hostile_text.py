"""A hostile text in all that others name (labels of old runs, benchmarks, reasons, devices, hosts,
domains) is harmless in every output of every command."""

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree.ElementTree import fromstring
from xml.sax.saxutils import escape

import pytest

from command_kit import called
from linkgauge.backends.sim.description import load
from vm_kit import domain

HOSTILE = (
    "=cmd|' /C calc'!A0{{7*7}}<script>alert(1)</script>##[error]a\n::error::b\r\n  ::warning ::c"
    "\x1b]0;title\x07\x1b[31m\x9b31m\u202e\u2066\u2028\x7fd"
)
AT_FIRST = f"::error::{HOSTILE}"
SEEN = "{{7*7}}"
COMMAND = re.compile(r"\s*::[A-Za-z]|.*##(vso)?\[")
FORMULA = ("=", "+", "-", "@", "|", "\t", "\r")
NUMBER = re.compile(r"-?[0-9.]+(e[+-]?[0-9]+)?")
OURS = re.compile(r"::(error|warning) title=linkgauge%3A [a-z -]+::")
BENCHMARK = "device_to_device_memcpy_read_ce"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A machine whose names are hostile, and runs, a history and a domain that have hostile names,
    too: `bad` has lost against `good`."""
    here = tmp_path_factory.mktemp("hostile")
    text = load("riscv-2gpu")[1]
    for name in ("NVIDIA A10X", "sifive-rv64-01", "sifive,x2800-v1", "6.6.12", '"535.104.07"'):
        text = text.replace(f": {name}\n", f": {json.dumps(HOSTILE)}\n")
    assert text.count("alert(1)") == 5
    (here / "m.yml").write_text(text)
    for label, figure in (("good", 1), ("bad", 0.5)):
        what = (BENCHMARK, "host_to_device_memcpy_ce", *FAST, "--samples", "6", "--label", label)
        done = called("run", *what, cwd=here, **history(here))
        assert done.returncode in (0, 1), done.stderr
        (folder,) = here.glob(f"results/*/{label}/*")
        run = json.loads(called("show", folder, "--json").stdout)
        run |= {"label": f"{AT_FIRST} {label}", "command": ["linkgauge", HOSTILE]}
        for result, name in zip(run["results"], (AT_FIRST, HOSTILE), strict=False):
            result |= {"benchmark": name, "title": name, "reason": HOSTILE}
            first, *others = result["cells"]
            first |= {"row": name, "reason": HOSTILE, "status": "error", "kind": "imex"}
            for cell in others:
                cell["column"] += HOSTILE
            for cell in result["cells"]:
                cell["samples"] = [one * figure for one in cell["samples"]]
                cell["summary"] = {
                    key: value if key == "n" or value is None else scaled(value, figure)
                    for key, value in cell["summary"].items()
                }
        if label == "bad":  # which lacks a cell
            run["results"][0]["cells"].pop()
        (folder / "run.json").write_text(json.dumps(run))
        shutil.move(folder, here / label)
        shutil.copytree(here / label, here / "both" / "x" / label / folder.name)
    assert called("history", "import", "both", cwd=here, **history(here)).returncode == 0
    name = HOSTILE.replace("\x1b", "").replace("\x07", "")  # which XML cannot hold
    (here / "domain.xml").write_bytes(domain(name=escape(name).replace("\n", "&#10;")))
    log = Path(__file__).parents[1] / "data/judge/logs/p2p-two-rtx-a6000-like.txt"
    flat = HOSTILE.replace("\n", " ")
    named = f"Device: 0, RTX A6000 {flat}, pciBusID: 1\nGPU 0: {flat} (UUID: 1)\n{flat}\n"
    (here / "hostile.log").write_text(named + log.read_text())
    (here / "host").mkdir()
    shutil.copytree("/proc/sys/kernel", here / "host/proc/sys/kernel", ignore=all_but("osrelease"))
    (here / "host/proc/sys/kernel/hostname").write_text(HOSTILE)
    (here / "host/sys/devices/system/cpu").mkdir(parents=True)
    return here


def scaled(value, by):
    return [one * by for one in value] if isinstance(value, list) else value * by


def all_but(name):
    return lambda _folder, names: [one for one in names if one != name]


def history(here):
    cache = here / "cache"
    return {"LINKGAUGE_HISTORY": here / "history.db", "XDG_CACHE_HOME": cache, "SHELL": "/bin/bash"}


FAST = ("--machine", "m.yml", "--size", "1M", "--samples", "2")
TABLE = [
    *(("show", "bad", form) for form in ("", "--json", "--csv", "--sarif", "--matrix")),
    ("show", "both"),
    ("show", "both", "--json"),
    ("show", "both", "--csv"),
    ("doctor", "bad", "--fix-script", "fix.sh"),
    *(("doctor", "bad", form) for form in ("--json", "--sarif")),
    ("doctor", "--machine", "m.yml"),
    *(("devices", "--machine", "m.yml", form) for form in ("", "-v", "--json", "--yaml")),
    ("devices", "--root", "host"),
    *(("expect", "m.yml", form) for form in ("", "--json")),
    ("capture", "--root", "host", "captured.tgz"),
    ("describe", HOSTILE, "-o", "described.yml"),
    *(("compare", "good", "bad", form) for form in ("", "--json", "--csv", "--markdown")),
    *(("export", "bad", form, *more, "-o", f"out{form.replace('--', '.')}")
      for form in ("--json", "--csv", "--parquet") for more in ((), ("--samples",))),
    *(("export", "bad", form) for form in ("--json", "--csv", "--markdown", "--junit")),
    *(("judge", "hostile.log", "--machine", "2 x RTX A6000", form)
      for form in ("", "--json", "--csv", "--matrix")),
    ("report", "bad", "-o", "one.html"),
    ("report", "bad", "-o", "one.pdf"),
    ("report", "good", "bad", "-o", "two.html"),
    ("report", "good", "bad", "-o", "two.pdf"),
    *(("gate", "--baseline", "good", "--current", "bad", form)
      for form in ("", "--json", "--csv", "--markdown", "--junit", "--github")),
    ("gate", "--baseline", "good", "--current", "bad", "--junit", "-o", "gate.xml", "--github"),
    ("baseline", "good", "bad", "-o", "baseline.json", "--write-limits", "limits.yml"),
    *(("history", "list", form) for form in ("", "--json", "--csv")),
    *(("history", "trend", HOSTILE, form) for form in ("", "--json", "--csv")),
    ("history", "trend", AT_FIRST),
    ("history", "prune", "--keep", "0d"),
    ("exporter", "--machine", "m.yml", "--textfile", "metrics.prom"),
    ("exporter", "--results", "both", "--textfile", "results.prom"),
    ("mcp", "--help"),  # it reads nothing but what a client asks
    ("pack", "bad", "-o", "bad.tar.zst"),
    ("share", "bad", "-o", "shared.html"),
    *(("run", BENCHMARK, *FAST, form) for form in ("", "--json", "--csv", "--dry-run")),
    ("copy", "sim:0 -> sim:1 by ce", *FAST),
    ("latency", "--machine", "m.yml", "--iterations", "20"),
    ("traffic", "--machine", "m.yml", "--samples", "2"),
    ("scale", "--machine", "m.yml", "--samples", "2"),
    ("vary", BENCHMARK, *FAST, "--env", f"NAME=1,{HOSTILE.replace(',', ' ')}", "--rounds", "8"),
    ("vary", BENCHMARK, *FAST, "--env", "NAME=1,2", "--rounds", "8", "--json"),
    ("watch", BENCHMARK, *FAST, "--every", "1s", "--budget", "99%", "--probes", "1"),
    ("watch", BENCHMARK, *FAST, "--every", "1s", "--budget", "99%", "--probes", "1", "--json"),
    ("check", "--machine", "m.yml", "--under", "20s"),
    ("check", "--machine", "m.yml", "--under", "20s", "--json"),
    *(("vm", "domain.xml", "--machine", "vm-degraded", "--as", role, form)
      for role in ("host", "guest") for form in ("", "--json")),
    *(("as", "--machine", "m.yml", *words) for words in (
        ("nvbandwidth", "-t", "device_to_device_memcpy_read_ce", "-i", "1"),
        ("nvbandwidth", "-j", "-t", "device_to_device_memcpy_read_ce", "-i", "1"),
        ("bandwidthTest", "--csv"), ("p2pBandwidthLatencyTest",),
        ("all_reduce_perf", "-g", "2", "-b", "1M", "-e", "1M"),
        ("nvbandwidth", HOSTILE), ("rblnBandwidthLatencyTest", HOSTILE))),
    *((name, HOSTILE) for name in (
        "show", "doctor", "compare", "export", "report", "gate", "baseline", "history", "run",
        "copy", "latency", "scale", "vary", "watch", "vm", "capture", "pack", "share", "ai", "list",
        "as", "devices", "check", "traffic", "exporter", HOSTILE)),
    *(("run", BENCHMARK, *FAST, option, HOSTILE) for option in (
        "--label", "--machine", "--size", "--prefix", "--fault", "--out", "--backend", "--resume")),
    ("list", "--prefix", HOSTILE),
    ("--show-completion",),
]  # fmt: skip
"""Commands with what they write; files are looked at wherever one is new."""


@pytest.mark.parametrize("words", TABLE, ids=lambda words: " ".join(words)[:60].strip())
def test_harmless(words, place):
    before = files(place)
    words = [word for word in words if word]
    done = called(*words, cwd=place, **history(place))
    refused = (2,) if any(HOSTILE in word for word in words) else ()
    assert done.returncode in (0, 1, 3, 4, *refused), done.stderr
    text = done.stdout
    if "--github" in words:
        text, commands = apart(text)
        err, more = apart(done.stderr)
        assert commands or more
    else:
        err = done.stderr
    check_text(err)
    kind = next((name for name in ("csv", "json", "junit") if f"--{name}" in words), "text")
    if words[0] != "as" and "-o" not in words and done.stdout:
        CHECKS[kind](text)
    check_text(text)
    for path in sorted(files(place) - before):
        check_file(path)


def apart(text):
    """Without the commands that are meant for GitHub, and these."""
    lines = text.splitlines(keepends=True)
    ours = [line for line in lines if OURS.match(line)]
    assert all(line.count("\n") == 1 and line[:-1].isprintable() for line in ours)
    assert not any("##[" in line for line in ours)
    return "".join(line for line in lines if line not in ours), ours


def files(folder):
    return {path for path in folder.rglob("*") if path.is_file() and "cache" not in path.parts}


def check_text(text):
    assert all(c.isprintable() or c in "\n\t" for c in text), ascii(text)
    assert not [line for line in text.split("\n") if COMMAND.match(line)]


def check_json(text):
    """That of a watch has a line for each event."""
    check_text(text)
    try:
        json.loads(text)
    except json.JSONDecodeError:
        assert all(json.loads(line) for line in text.splitlines())


def check_csv(text):
    check_text(text)
    for row in csv.reader(io.StringIO(text)):
        for field in row:
            assert not field.lstrip().startswith(FORMULA) or NUMBER.fullmatch(field), field


def check_xml(text):
    check_text(text)
    assert not list(fromstring(text).iter("script"))


def check_html(text):
    check_text(text)
    assert "<script>alert" not in text
    assert SEEN in text


def check_script(text):
    """Unread it does nothing; what is named in it is in comments."""
    check_text(text)
    done = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "confirmed=yes" in done.stderr
    assert SEEN in text
    commands = [line for line in text.partition("\nfi\n")[2].splitlines() if line[:1] != "#"]
    assert any(commands)
    assert not [line for line in commands if SEEN in line or "calc" in line]


def check_file(path):
    """Whatever a command wrote, by what its name says it is."""
    if path.suffix == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
        for row in table.to_pylist():
            assert all(v.isprintable() for v in row.values() if isinstance(v, str))
    elif path.suffix == ".pdf":
        pages = pytest.importorskip("pypdf").PdfReader(path).pages
        text = "\n".join(page.extract_text() for page in pages)
        assert SEEN in text.replace(" ", "")
        check_text(text)
    elif path.suffix not in (".tgz", ".zst", ".bin", ".db", ".db-wal", ".db-shm"):
        kind = {".json": "json", ".csv": "csv", ".xml": "junit", ".html": "html",
                ".sh": "script"}  # fmt: skip
        text = path.read_text("utf-8")
        if path.name == "shared.html":  # what is shared holds no text that it does not know
            assert SEEN not in text
            assert "<script>alert" not in text
            check_text(text)
        else:
            CHECKS[kind.get(path.suffix, "text")](text)


CHECKS = {
    "text": check_text, "json": check_json, "csv": check_csv, "junit": check_xml,
    "html": check_html, "script": check_script,
}  # fmt: skip


def test_the_text_reaches_what_is_looked_at(place):
    """Else the others prove nothing."""
    for words in (
        ("show", "bad"), ("doctor", "bad"), ("devices", "--machine", "m.yml"),
        ("compare", "good", "bad"), ("export", "bad", "--csv"), ("export", "bad", "--junit"),
        ("export", "bad", "--markdown"), ("history", "list"), ("history", "trend", HOSTILE),
        ("gate", "--baseline", "good", "--current", "bad", "--junit"),
        ("vm", "domain.xml", "--machine", "vm-degraded", "--as", "host"),
        ("as", "--machine", "m.yml", "bandwidthTest"), ("run", BENCHMARK, *FAST, "--json"),
    ):  # fmt: skip
        done = called(*words, cwd=place, **history(place))
        assert re.search(r"\{\{7\\?\*7\}\}", done.stdout + done.stderr), (words, done)


def test_every_command_is_in_the_table():
    from linkgauge.cli.main import COMMANDS

    assert {words[0] for words in TABLE} >= set(COMMANDS)
