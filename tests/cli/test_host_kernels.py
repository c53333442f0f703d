"""Which kernel host threads have, from the command line: found, named, by hand, or by default."""

import json

import pytest

from command_kit import called
from linkgauge import _native

SHORT = ("--size", "1M", "--samples", "6", "--loops", "2", "--json")
WRITE = "null -> host:0 by cpu*1"


def warnings(done):
    assert done.returncode == 0, done.stderr
    cells = [c for result in json.loads(done.stdout)["results"] for c in result["cells"]]
    return [warning for cell in cells for warning in cell["warnings"]]


def named(cache):
    """The warnings of a run that names what was chosen, with what is remembered below `cache`."""
    done = called("copy", WRITE, *SHORT, XDG_CACHE_HOME=cache)
    return [w for w in warnings(done) if w.endswith(", chosen on this machine")]


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """Where a first run remembered what it found, and what it named."""
    cache = tmp_path_factory.mktemp("cache")
    return cache, named(cache)


def test_a_run_finds_the_best_kernels_once_and_names_them(searched):
    cache, (first,) = searched
    (file,) = (cache / "linkgauge" / "tuned").iterdir()
    remembered = json.loads(file.read_text())
    best, _ = remembered["write, 1 thread, within the caches"]
    assert first == f"host:0.cpu: write by {best}, chosen on this machine"
    # Another that knows what this CPU runs is used without a search.
    for case in remembered:
        remembered[case] = remembered[case][:1] * 2
    file.write_text(json.dumps(remembered))
    assert len(named(cache)) == 1


def test_a_kernel_by_hand_or_none_that_was_measured(tmp_path, searched):
    name = _native.kernels(_native.Op.WRITE)[-1]
    done = called("copy", WRITE, *SHORT, "--host-kernel", name, XDG_CACHE_HOME=searched[0])
    assert f"host:0.cpu: write by {name}, as asked for" in warnings(done)
    done = called("copy", WRITE, *SHORT, "--untuned", XDG_CACHE_HOME=tmp_path / "none")
    default = _native.default_kernel(_native.Op.WRITE, streaming=False)
    assert f"host:0.cpu: write by {default}, by default, not measured" in warnings(done)
    assert not (tmp_path / "none").exists()
