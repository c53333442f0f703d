"""Exit codes are a contract, the same for every command: what gives which, and which comes first
where several apply."""

import pytest

from transcript_shell import Shell

RUN = "linkgauge run --machine riscv-2gpu --size 1M --samples 1"
COPIES = f"{RUN} host_to_device_memcpy_ce"
PAIRS = f"{COPIES} device_to_device_memcpy_read_ce"
TRAFFIC = "linkgauge traffic --machine riscv-2gpu --samples 1 --buffer 1M"
SLOW, WRONG = "--fault 'slow sim:0 rate=25%'", "--fault 'flip sim:0'"
ERROR = "--fault 'nomem sim:1'"
LARGE = "--size 256M"
"""A size at which a slow link shows: beside it the start of a copy counts little."""

PASSED, FAILED, REFUSED, LOST, NOTHING = range(5)
CODES = [
    (PASSED, "all passed", COPIES),
    (PASSED, "a skip beside what passed", f"{PAIRS} --device 0"),
    (PASSED, "what is low is not judged", f"{COPIES} {LARGE} {SLOW} --no-verdict"),
    (PASSED, "a plan", f"{COPIES} --dry-run"),
    (PASSED, "help", "linkgauge run --help"),
    (PASSED, "the version", "linkgauge --version"),
    (PASSED, "a look at the machine", "linkgauge"),
    (PASSED, "a node that is fit", "linkgauge check --machine riscv-2gpu --under 10m"),
    (FAILED, "wrong bytes", f"{COPIES} {WRONG}"),
    (FAILED, "wrong bytes, without a verdict", f"{COPIES} {WRONG} --no-verdict"),
    (FAILED, "a low cell", f"{COPIES} {LARGE} {SLOW}"),
    (FAILED, "a low cell in a document", f"{COPIES} {LARGE} {SLOW} --json"),
    (FAILED, "below a limit", f"{COPIES} --limits high.yml"),
    (FAILED, "a fault that a look finds", "linkgauge doctor --machine vm-degraded"),
    (FAILED, "a node that is not fit", "linkgauge check --machine riscv-2gpu --devices 9"),
    (FAILED, "too slow a device beside threads", f"{TRAFFIC} --min-device-bandwidth 100000"),
    (FAILED, "wrong bytes of a collective", f"{RUN} all_reduce {WRONG}"),
    (REFUSED, "an unknown option", f"{COPIES} --swift"),
    (REFUSED, "an unknown benchmark", f"{RUN} memcpy"),
    (REFUSED, "an unknown command", "linkgauge measure"),
    (REFUSED, "a file that is no run", "linkgauge show high.yml"),
    (REFUSED, "a file that is not there", "linkgauge doctor gone.json"),
    (REFUSED, "a folder that cannot be written", f"{COPIES} --out high.yml"),
    (REFUSED, "two documents for one stdout", f"{COPIES} --json --csv"),
    (LOST, "an error", f"{COPIES} {ERROR}"),
    (LOST, "an error, and wrong bytes", f"{COPIES} {ERROR} {WRONG}"),
    (LOST, "an error, and a low cell", f"{COPIES} {LARGE} {ERROR} {SLOW}"),
    (LOST, "an error, without a verdict", f"{COPIES} {ERROR} --no-verdict"),
    (LOST, "a timeout", f"{COPIES} --timeout 1 --fault 'hang sim:1'"),
    (LOST, "a process that ended", f"{COPIES} --fault 'crash sim:1'"),
    (LOST, "nothing but errors", f"{COPIES} --device 1 {ERROR}"),
    (NOTHING, "nothing but skips", f"{RUN} device_to_device_memcpy_read_ce --device 0"),
    (NOTHING, "no pairs to compare", "linkgauge compare one one"),
]  # fmt: skip


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp("codes"))
    shell.run("cat > high.yml", 'limits:\n  - {limit: "median >= 900 GB/s"}\n')
    assert shell.run(f"{COPIES} --label one").code == PASSED
    return shell


@pytest.mark.parametrize(
    ("code", "line"), [(code, line) for code, _, line in CODES], ids=[what for _, what, _ in CODES]
)
def test_what_gives_which_exit_code(code, line, shell):
    done = shell.run(line)
    assert done.code == code, done.out + done.err
    if code == REFUSED:
        assert (done.out, bool(done.err)) == ("", True)


def test_a_stored_run_has_the_code_of_its_measurement(shell):
    """However it is looked at; an export is one that worked."""
    for code, line in ((FAILED, f"{COPIES} {WRONG}"), (LOST, f"{COPIES} {ERROR}")):
        assert shell.run(f"{line} --label kept").code == code
        for look in ("show kept", "show kept --json", "show kept --matrix", "doctor kept"):
            assert shell.run(f"linkgauge {look}").code == code, look
        assert shell.run("linkgauge export kept --csv").code == PASSED


def test_a_gate_fails_for_a_proven_loss_before_it_is_in_doubt(shell):
    """1 before 3, unlike all other commands."""
    for number in range(6):
        shell.run("cp machines/riscv-2gpu.yml m.yml")
        shell.run(f"sed 's/seed: 64/seed: {number}/' m.yml")
        run = COPIES.replace("riscv-2gpu", "m.yml").replace("--samples 1", "--samples 3")
        shell.run(f"{run} --no-verdict --label before")
        shell.run(f"{run} --no-verdict --label after {SLOW}")
    before, after = "results/simulated-m/before", "results/simulated-m/after"
    gate = "linkgauge gate --no-history"
    assert shell.run(f"{gate} --baseline {before} --current {before}").code == PASSED
    assert shell.run(f"{gate} --baseline {before} --current {after}").code == FAILED
    assert shell.run(f"{gate} --baseline {before} --current gone").code == REFUSED
    assert shell.run(f"{gate} --baseline one --current one").code == NOTHING
