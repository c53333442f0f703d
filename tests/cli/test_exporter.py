"""`linkgauge exporter`: what it prints and where it listens, and a file for node_exporter."""

import configparser
import re
import shlex
import signal
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from command_kit import called
from exporter_kit import exporting, families, samples, value
from history_kit import run_at
from linkgauge.history.address import address
from linkgauge.history.store import opened
from linkgauge.history.writing import add

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


class TestTextfile:
    def test_holds_the_history_and_the_devices(self, tmp_path):
        with opened(address(str(tmp_path / "history.db"))) as store:
            add(store, run_at(0), None)
            add(store, run_at(1, simulated=True, label="later"), None)
        path = tmp_path / "linkgauge.prom"
        done = called(
            "exporter", "--textfile", path, "--history", tmp_path / "history.db", "--all-hosts"
        )
        assert (done.returncode, done.stdout) == (0, "")
        text = path.read_bytes()
        labels = {own["label"]: own for own, _ in samples(text, "linkgauge_last_run_info")}
        assert labels.keys() == {"nightly", "later"}
        assert labels["later"]["simulated"] == "true"
        assert value(text, "linkgauge_exporter_info") == 1
        assert sorted(one.name for one in tmp_path.iterdir()) == ["history.db", "linkgauge.prom"]

    def test_shows_the_results_of_this_host_alone(self, tmp_path):
        with opened(address(str(tmp_path / "history.db"))) as store:
            add(store, run_at(0), None)  # of a host "box"
        called("exporter", "--textfile", tmp_path / "a.prom", "--history", tmp_path / "history.db")
        text = (tmp_path / "a.prom").read_bytes()
        assert samples(text, "linkgauge_last_run_info") == []
        assert families(text)

    def test_shows_runs_of_a_folder(self, tmp_path):
        run = (
            "run", "host_to_device_memcpy_ce", *MACHINE, "--profile", "quick", "--samples", "2",
            "--out", tmp_path / "results", "--label", "x",
        )  # fmt: skip
        assert called(*run).returncode == 0
        for more in (("--results", tmp_path / "results"), ()):  # without a history: results/
            done = called("exporter", *MACHINE, "--textfile", "a.prom", *more, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            text = (tmp_path / "a.prom").read_bytes()
            assert value(text, "linkgauge_last_run_info", label="x", host="riscv-2gpu") == 1
            name = "linkgauge_cell_{}bandwidth_bytes_per_second"
            measured, expected = (samples(text, name.format(kind)) for kind in ("", "expected_"))
            assert len(measured) == len(expected) == 2

    def test_replaces_what_was_there_only_when_it_can(self, tmp_path):
        (tmp_path / "a.prom").write_text("before")
        assert called("exporter", *MACHINE, "--textfile", tmp_path / "a.prom").returncode == 0
        assert b"before" not in (tmp_path / "a.prom").read_bytes()
        done = called("exporter", *MACHINE, "--textfile", tmp_path / "none" / "a.prom")
        assert done.returncode == 2
        assert "none/a.prom: No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--listen", "here"), "--listen 'here': give ADDRESS:PORT, such as 127.0.0.1:9410"),
        (("--textfile", "a.txt"), "--textfile a.txt: node_exporter reads files that end in .prom"),
        (("--textfile", "a.prom", "--listen", "1"), "leave out --listen"),
        (("--history", "a", "--results", "b"), "--history and --results: choose one"),
        (("--refresh", "0"), "--refresh '0': give more than nothing"),
        (("--refresh", "nan"), "--refresh 'nan' is not understood: write 30s"),
        (("--refresh", "1d"), "--refresh 86400: give less than a day"),
        (("--fault", "lost sim:0"), "--fault needs a simulated machine"),
        (("--machine", "none-such"), "none-such"),
        (("--history", "mysql://x/y"), "no history in mysql"),
    ],
)
def test_bad_input_is_one_line(options, says, tmp_path):
    done = called("exporter", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_names_the_extra_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    done = called("exporter", *MACHINE)
    assert done.returncode == 2
    assert done.stderr == (
        f"linkgauge: prometheus_client is not installed: {sys.executable} -m pip install "
        "'linkgauge[exporter]' (or prometheus_client alone)\n"
    )


def test_the_unit_of_systemd_serves_this_machine_alone():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(Path(__file__).parents[2] / "contrib" / "linkgauge-exporter.service")
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert Path(program).name == "linkgauge"
    assert words == ["exporter"]  # no --listen
    assert set(unit["Service"]["SuccessExitStatus"].split()) == {"130", "143"}
    assert unit["Service"]["Environment"].startswith("LINKGAUGE_HISTORY=/")
