"""Which runs each mode makes, and by which command lines."""

from nvbandwidth_kit import record
from nvbandwidth_plan import command_line, linkgauge_command, nvbandwidth_command, schedule


def test_all_shares_runs():
    rounds = schedule("all", 2, False)
    assert all([one.tool for one in pair] == ["linkgauge", "nvbandwidth"] for pair in rounds)
    scopes = [tuple(one.scope for one in pair) for pair in rounds]
    assert scopes == [("tuned", "tuned")] * 2 + [("suite", "suite"), ("suite", "host")]


def test_runs_of_each_mode():
    modes = ("device", False), ("host", False), ("suite", False), ("suite", True)
    counts = [sum(map(len, schedule(mode, 3, theirs))) for mode, theirs in modes]
    assert counts == [2, 6, 3, 4]


def test_as_is_whole_once_then_what_crosses_to_the_host():
    scopes = [[step.scope for step in pair] for pair in schedule("as", 3, False)]
    assert scopes == [["suite"] * 2, ["crossing"] * 2, ["crossing"] * 2]
    command = nvbandwidth_command(("lg", "as", "nvbandwidth"), "crossing")
    assert command[:4] == ("lg", "as", "nvbandwidth", "-j")
    assert "host_device_latency_sm" in command


def test_only_tuned_runs_are_tuned():
    assert "--untuned" in linkgauge_command(("lg",), "suite", "O", ())
    command = linkgauge_command(("lg",), "tuned", "O", ("--max-time", "2"))
    assert "--untuned" not in command
    assert command[-2:] == ("--max-time", "2")


def test_command_lines_tell_nothing_of_the_machine():
    one = record("linkgauge", "host", command=("/a/python", "-m", "x", "--out", "/tmp/q/1"))
    assert command_line(one) == "python -m x --out DIR"
