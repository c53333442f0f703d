"""Wrong uses that people make: what each says is short, and names what to do."""

import pytest

from command_kit import called

RUN = ("run", "host_to_device_memcpy_ce", "--machine", "ppu-8", "--samples", "1", "--no-report")


def refusal(*words, cwd=None):
    done = called(*words, **({"cwd": cwd} if cwd else {}))
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("ai", "--machine", "x"),
            "linkgauge ai has no option --machine: linkgauge ai --help lists",
        ),
        (("export", "--yaml"), "linkgauge export has no option --yaml: linkgauge export --help"),
        (
            ("gate", "--curent", "x"),
            "linkgauge gate has no option --curent, did you mean '--current'?",
        ),
        (
            ("copy", "host:0 -> host:0 via ce"),
            "expected 'by' and an engine, '&' or the end, found 'via'",
        ),
        (
            ("copy", "host:0 -> host:0 by cpu and host:0 -> host:0"),
            "expected '&' or the end, found 'and'",
        ),
        (
            ("run", "--machine", "dgx-h200-8", "--fault", "slow sim:33"),
            "no sim:33: targets are sim:3, ",
        ),
    ],
)
def test_one_line_says_what_is_wrong(words, said):
    error = refusal(*words)
    assert said in error
    assert len(error.splitlines()[0]) < 200


def test_a_folder_of_runs_is_not_resumed_but_its_latest_run_named(tmp_path):
    assert called(*RUN, cwd=tmp_path).returncode == 0
    (kept,) = tmp_path.rglob("run.json")
    folder = kept.parent.relative_to(tmp_path)
    said = refusal("run", "--resume", folder.parent, cwd=tmp_path)
    assert said == (
        f"linkgauge: {folder.parent} is not the folder of a run: the latest below it is {folder}\n"
    )


def test_options_of_linkgauge_behind_a_tool_are_named_without_touching_its_output():
    right = called("as", "nvbandwidth", "-t", "0", "--machin", "ppu-8")
    done = called("as", "nvbandwidth", "-t", "0", "--machine", "ppu-8")
    assert done.returncode == right.returncode == 1
    assert done.stdout.replace("--machine", "--machin") == right.stdout
    assert (
        "linkgauge: --machine goes before the tool: linkgauge as --machine … nvbandwidth"
        in done.stderr
    )
    assert "linkgauge:" not in right.stderr
