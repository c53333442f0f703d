"""Options and sizes of nccl-tests are read however they are written."""

import re
from pathlib import Path

import pytest

from compat_kit import MadeUp, rated, spoken

VALUES = {
    "t": "2", "g": "4", "b": "8", "e": "1K", "i": "2M", "f": "4", "n": "7", "m": "3", "w": "5",
    "N": "2", "p": "1", "c": "0", "o": "max", "d": "half", "r": "-1", "z": "2", "y": "1",
    "T": "9", "G": "0", "C": "0", "S": "0", "J": "x.json", "a": "3", "R": "2", "x": "-1",
    "D": "0", "V": "8", "M": "0", "u": "0", "I": "1", "K": "1", "X": "x.csv", "Z": "csv",
}  # fmt: skip


def names():
    """The long name of each letter, as -h has them."""
    found = re.findall(r"\[-(\w),--(\w+) ", spoken("all_reduce_perf", "-h").stdout)
    return dict(found)


def test_an_option_is_the_same_however_it_is_written(tmp_path, monkeypatch):
    long = names()
    assert set(VALUES) == set(long)

    def short(letter):
        """The shortest beginning of the long name that no other has."""
        name, others = long[letter], [one for one in long.values() if one != long[letter]]
        return next(
            name[:length]
            for length in range(1, len(name) + 1)
            if length == len(name) or not any(one.startswith(name[:length]) for one in others)
        )

    monkeypatch.chdir(tmp_path)
    found = []
    for write in (
        lambda letter, value: [f"-{letter}", value],
        lambda letter, value: [f"-{letter}{value}"],
        lambda letter, value: [f"--{long[letter]}={value}"],
        lambda letter, value: [f"--{long[letter]}", value],
        lambda letter, value: [f"--{short(letter)}={value}"],
    ):
        made_up = MadeUp(rated())
        made_up.install(monkeypatch)
        words = [word for letter, value in VALUES.items() for word in write(letter, value)]
        done = spoken("all_reduce_perf", "", *words)
        assert done.returncode == 0, done.stderr
        Path("x.json").unlink()
        asked = [(one.sizes, one.loops, one.engines) for one in made_up.settings]
        found.append((done.stdout, done.stderr, asked, made_up.works))
    first, *others = found
    assert "nThread 2 nGpus 4 minBytes 8 maxBytes 1024 step: 4(factor)" in first[0]
    assert "warmup iters: 5 iters: 7 agg iters: 3" in first[0]
    assert others == [first] * 4


@pytest.mark.parametrize(
    ("written", "size"),
    [("8", 8), ("1K", 1024), ("1.5k", 1536), ("512MB", 512 << 20), ("1 G", 1 << 30),
     ("1e3", 1000), (".5M", 1 << 19), ("2GiB", 2 << 30)],
)  # fmt: skip
def test_sizes(written, size, monkeypatch):
    MadeUp(rated()).install(monkeypatch)
    done = spoken("all_reduce_perf", "-g 2", "-b", written, "-e", "2G")
    assert f" minBytes {size} maxBytes " in done.stdout


@pytest.mark.parametrize("written", ["", "x", "1T", "-1K", "1e", "K", "1e30", "nan", "0x1p2000"])
def test_sizes_that_are_none(written):
    done = spoken("all_reduce_perf", "", f"--maxbytes={written}")
    assert (done.returncode, f"--maxbytes {written}: " in done.stderr) == (255, True)
