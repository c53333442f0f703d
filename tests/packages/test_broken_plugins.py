"""Broken plug-ins harm nobody: each is named, nothing ends in a traceback, and all that does not
belong to the plug-in ends with the code that it has without it. LINKGAUGE_CAMPAIGN=full tries all
packages with all commands, some minutes."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import cache

import pytest

import broken_plugins_kit as kit
from command_kit import WIDTH, folder_of, linkgauge
from linkgauge.machine.processes.signals import AGAIN_SECONDS

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
PACKAGES = [one for one in kit.BROKEN if FULL or one.name in kit.QUICK]
HANGING = """
import time
def c(e):
    for _ in range(120):
        time.sleep(0.5)
"""
STUBBORN = """
import time
def c(e):
    end = time.time() + 60
    while time.time() < end:
        try:
            time.sleep(0.5)
        except BaseException:
            pass
"""
PRINTING = r"""
import os
def c(e):
    print("BY PRINT")
    os.system("echo BY A PROGRAM")
    os.write(1, b"BY A LIBRARY\n")
    return ()
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A run that was kept without plug-ins."""
    out = tmp_path_factory.mktemp("kept")
    assert linkgauge(*kit.RUN, "--out", out).returncode == 0
    return folder_of(out)


@pytest.fixture(scope="module")
def without(kept, tmp_path_factory):
    """What a command does without plug-ins."""
    return cache(lambda words: _done(words, kept, tmp_path_factory.mktemp("without")))


def _done(words, kept, folder, **surroundings):
    told = [word.replace("KEPT", str(kept)) for word in words]
    return linkgauge(*told, cwd=folder, LINKGAUGE_HISTORY="none", **surroundings)


def _commands(package):
    usual = kit.USUAL if FULL else [kit.DOCTOR]
    return [(words, None) for words in (*usual, *package.more)] + [*package.own]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda one: one.name)
def test_a_broken_plug_in_is_named_and_harms_nothing(package, without, kept, tmp_path):
    site = package.lay(tmp_path / "site")
    origin = package.origin
    named = 0
    for words, code in _commands(package):
        done = _done(words, kept, tmp_path, PYTHONPATH=site)
        said = f"{words}: {done.stderr}"
        expected = without(words).returncode if code is None else code
        assert done.returncode == expected, said
        assert "Traceback" not in done.stdout + done.stderr, said
        assert "Warning" not in done.stderr, said
        assert "\x1b" not in done.stdout + done.stderr, said
        lines = [line for line in done.stderr.splitlines() if origin in line]
        assert len(lines) <= 1 + package.clashes, said
        named += len(lines)
        if words in (kit.DOCTOR, kit.DEGRADED, kit.REPORT, kit.SHOW):
            assert done.stdout == without(words).stdout, said
        if words == kit.LIST and not package.adds:
            assert done.stdout == without(words).stdout, said
        if "--json" in words:
            json.loads(done.stdout)
    assert named or package.is_silent


def test_another_package_of_a_name_that_linkgauge_needs_is_named_in_a_line(tmp_path):
    """One that is no plug-in's and is found first."""
    module = tmp_path / "msgspec.py"
    module.write_text("raise RuntimeError('shadowed')")
    done = linkgauge(*kit.LIST, PYTHONPATH=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        f"linkgauge: msgspec ({module}) cannot be loaded: RuntimeError: shadowed\n"
    )


def test_a_plug_in_hides_no_package_only_if_its_own_record_has_it(tmp_path):
    """Two plug-ins of a folder: the one whose record has the module is named."""
    site = kit.SHADOWING.lay(tmp_path / "site")
    kit.Broken("other", "Room('NAME')").lay(site)
    for name, files in (("shadows", "msgspec.py,,\n"), ("other", "other_room.py,,\n")):
        (site / f"{name}-1.0.dist-info/RECORD").write_text(files)
    done = linkgauge(*kit.LIST, PYTHONPATH=site)
    assert done.returncode == 0
    assert done.stderr == (
        f"linkgauge: {site / 'msgspec.py'} of shadows 1.0 is left out: "
        "another package has this name\n"
    )


def test_what_a_plug_in_prints_does_not_reach_the_document(tmp_path):
    site = kit.Broken("prints", kit.CHECK, PRINTING).lay(tmp_path / "site")
    done = linkgauge(*kit.DOCTOR, "--json", PYTHONPATH=site)
    assert json.loads(done.stdout)["findings"] is not None
    for text in ("BY PRINT", "BY A PROGRAM", "BY A LIBRARY"):
        assert text in done.stderr
    assert done.stderr.count("prints 1.0") == 0


def _until(process, text):
    """Reads stderr until the text comes."""
    said = ""
    while text not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


def _started(code, folder, room=kit.CHECK, words=kit.DOCTOR):
    """Starts a command with a plug-in of this code."""
    site = kit.Broken("slow", room, code).lay(folder)
    return subprocess.Popen(
        [sys.executable, "-m", "linkgauge", *words], cwd=folder, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, **WIDTH, "PYTHONPATH": str(site)},
    )  # fmt: skip


def test_a_hook_that_takes_long_is_named_while_it_runs_and_ctrl_c_ends_it(tmp_path):
    """A second Ctrl-C ends one that goes on."""
    hangs, stubborn = _started(HANGING, tmp_path / "h"), _started(STUBBORN, tmp_path / "s")
    for process, presses in ((hangs, 1), (stubborn, 2)):
        with process:
            said = _until(process, "slow 1.0")
            assert "the check slow_code:c of slow 1.0 still runs after 5 s" in said
            for _ in range(presses):
                process.send_signal(signal.SIGINT)
                time.sleep(2 * AGAIN_SECONDS)
            assert process.wait(30) == 130
            assert "Traceback" not in process.stderr.read()


def test_a_backend_that_takes_long_to_open_is_named_while_it_runs(tmp_path):
    code = "import time\ndef create(*a, **k):\n    time.sleep(7)\n    raise SystemExit(0)\n"
    site = kit.Broken("slow", kit.BACKEND, code).lay(tmp_path / "site")
    done = linkgauge("run", "--backend", "npu", cwd=tmp_path, PYTHONPATH=site)
    assert done.returncode == 2
    slow, refused = done.stderr.splitlines()
    assert "the backend 'npu' of slow 1.0 still runs after 5 s" in slow
    assert refused.endswith("the backend 'npu' of slow 1.0 failed: SystemExit: 0")


HOLDING = "import ctypes\ndef {}(*a, **k):\n    ctypes.PyDLL(None).sleep(60)\n"
"""Native code that holds the interpreter's lock: no other thread runs, and no signal's handler."""


def test_a_backend_of_native_code_that_never_returns_is_named_and_ctrl_c_ends_it(tmp_path):
    words = ("run", "--backend", "npu")
    with _started(HOLDING.format("create"), tmp_path, kit.BACKEND, words) as process:
        assert "the backend 'npu' of slow 1.0 still runs after 5 s" in _until(process, "slow 1.0")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_a_check_of_native_code_that_never_returns_ends_with_the_quit_key(tmp_path):
    begun = tmp_path / "begun"
    code = f"open({str(begun)!r}, 'w').close()\n" + HOLDING.format("c")
    with _started(code, tmp_path) as process:
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGQUIT)
        assert process.wait(30) == -signal.SIGQUIT
