"""What a plan will take is said by what its latest runs took."""

import json

from command_kit import called

ASKED = ("run", "host_to_host_memcpy_copy_cpu", "--size", "1M", "--max-time", "0.05", "--no-report")


def planned(*options):
    done = called(*ASKED, *options, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_plan_takes_as_long_as_its_latest_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(tmp_path / "history.db"))
    assert planned()["usual"] is None
    assert "latest runs" not in called(*ASKED, "--dry-run").stdout
    done = called(*ASKED, "--out", tmp_path / "first", "--json")
    (usual,) = {planned()["usual"]}
    run = json.loads(done.stdout)
    assert usual is not None
    assert usual > 0
    assert run["finished"] > run["started"]
    assert "as in its latest runs here; at most" in called(*ASKED, "--dry-run").stdout
    # Other settings, another plan, or seconds that the user gave: nothing is known, or asked.
    assert planned("--precision", "0.3")["usual"] is None
    assert planned("--size", "2M,4M")["usual"] is None
    assert planned("--budget", "5s")["usual"] is None


def test_a_history_that_cannot_be_read_tells_nothing(tmp_path, monkeypatch):
    (tmp_path / "broken.db").write_bytes(b"no history")
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(tmp_path / "broken.db"))
    assert planned()["usual"] is None
