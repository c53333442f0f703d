"""`linkgauge exporter`: what it prints and where it listens, and its unit of systemd."""

import configparser
import re
import shlex
import signal
from pathlib import Path
from urllib.request import urlopen

from exporter_kit import exporting, samples

MACHINE = ("--machine", "riscv-2gpu")


def listening(pid):
    """The local addresses at which a process listens, as the kernel writes them."""
    own = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        own |= set(re.findall(r"socket:\[(\d+)\]", str(file.readlink())))
    tables = (Path(f"/proc/{pid}/net/{name}") for name in ("tcp", "tcp6", "udp", "udp6"))
    rows = [
        line.split() for table in tables if table.exists()
        for line in table.read_text().splitlines()[1:]
    ]  # fmt: skip
    return {row[1].rpartition(":")[0] for row in rows if row[9] in own and row[3] in ("0A", "07")}


def test_listens_on_loopback_alone_and_ends_by_a_signal():
    with exporting(*MACHINE, "--listen", "0") as (process, line):
        (url,) = re.findall(r"^metrics at (http://127\.0\.0\.1:\d+/metrics)\n$", line)
        assert listening(process.pid) == {"0100007F"}
        with urlopen(url, timeout=20) as answer:
            text = answer.read()
        assert {own["simulated"] for own, _ in samples(text, "linkgauge_gpu_up")} == {"true"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_says_so_where_other_machines_can_read():
    with exporting(*MACHINE, "--listen", "0.0.0.0:0") as (process, line):
        assert "metrics at http://0.0.0.0:" in line
        assert process.stderr.readline() == (
            "warning: other machines can read them: nothing asks who they are\n"
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_the_unit_of_systemd_serves_this_machine_alone():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(Path(__file__).parents[2] / "contrib" / "linkgauge-exporter.service")
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert Path(program).name == "linkgauge"
    assert words == ["exporter"]  # no --listen
    assert set(unit["Service"]["SuccessExitStatus"].split()) == {"130", "143"}
    assert unit["Service"]["Environment"].startswith("LINKGAUGE_HISTORY=/")
