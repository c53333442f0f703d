"""A name that is mistyped gets a suggestion, whatever it names; else all names there are."""

from pathlib import Path

import pytest

from command_kit import called
from linkgauge.cli.run_sides import runs_of
from linkgauge.model.errors import InputError
from linkgauge.model.names import hint

SIM = ("--machine", "ppu-8")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "--machine", "dgx-h20-8"), "unknown machine 'dgx-h20-8', did you mean"),
        (("run", "--machine", "DGX_H200-8"), "did you mean 'dgx-h200-8'?"),
        (("run", "--profile", "quik"), "unknown profile 'quik', did you mean 'quick'?"),
        (("run", *SIM, "--fault", "slo sim:0"), "unknown fault 'slo', did you mean 'slow'?"),
        (("run", "--backend", "opncl"), "unknown backend 'opncl', did you mean 'opencl'?"),
        (("run", "--backend", "rocm"), "unknown backend 'rocm': there are host, cuda, opencl"),
        (("run", "--host-mode", "streem"), "unknown host mode 'streem', did you mean 'stream'?"),
        (("run", "--kernel", "bulky"), "unknown kernel 'bulky', did you mean 'bulk'?"),
        (("run", "all_reduce", "--types", "flaot"), "--types flaot, did you mean 'float'?"),
        (("run", "allreduce"), "unknown benchmark 'allreduce', did you mean 'all_reduce'?"),
        (("as", "nvbandwith"), "unknown tool 'nvbandwith', did you mean 'nvbandwidth'?"),
        (("scale", "allreduce"), "unknown collective 'allreduce', did you mean 'all_reduce'?"),
        (("scale", "All-Reduce"), "did you mean 'all_reduce'?"),
        (("ai", "inferense"), "unknown workload 'inferense', did you mean 'inference'?"),
        (("vary", "--experiment", "pined"), "unknown experiment 'pined', did you mean 'pinned'?"),
        (("vary", "all_reduce", "--memory", "hgue"), "--memory hgue, did you mean 'huge'?"),
        (("history", "trends"), "history 'trends', did you mean 'trend'?"),
    ],
)  # fmt: skip
def test_a_mistyped_name_gets_a_suggestion(arguments, says, tmp_path):
    done = called(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr


def test_a_mistyped_label_does_too(tmp_path, monkeypatch):
    done = called("run", "host_to_device_memcpy_ce", *SIM, "--samples", "1", "--label", "nightly",
                  "--no-report", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    says = "'nigtly' is not a file, and not a label of a run in results, did you mean 'nightly'?"
    for command in (["show"], ["report"], ["export", "--csv"]):
        refused = called(*command, "nigtly", cwd=tmp_path)
        assert (refused.returncode, refused.stderr) == (2, f"linkgauge: {says}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="did you mean 'nightly'"):
        runs_of(Path("nigtly"))


def test_what_is_like_none_of_them_gets_all():
    assert hint("x", ("one", "two")) == ": there are one, two"
    assert hint("x", ("one", "two"), ": see the list") == ": see the list"
    assert hint("two", ()) == ": there are "
