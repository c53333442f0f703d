"""hardware.yml: what is stated of a machine is kept as it is written."""

import json

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from command_kit import called

MACHINE = ("devices", "--machine", "ppu-2x2")


def stated(path):
    done = called(*MACHINE, "--hardware", path, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["inventory"].get("stated", {})


def test_what_is_stated_is_kept_and_what_is_known_is_not(tmp_path):
    path = tmp_path / "hardware.yml"
    path.write_text(called(*MACHINE, "--yaml").stdout)
    assert stated(path) == {}
    path.write_text("soc: X2800-v1\nnvlink_fusion_fw: 2025.10\nrack: 007\nfirmware:\nos: ~\n")
    assert stated(path) == {"soc": "X2800-v1", "nvlink_fusion_fw": "2025.10", "rack": "007"}


@pytest.mark.parametrize(
    "content",
    [
        b"", b"- a", b"a: [1]", b"a: {b: c}", b"[a]: b", b"a: b: c", b"\xff\xfe\x00", b"\0", None,
        b'a: "\\ud800"', b"#" * (1 << 20) + b"#",
    ],
)  # fmt: skip
def test_what_is_no_hardware_yml_is_refused_in_one_line(content, tmp_path):
    if content is not None:
        (tmp_path / "x").write_bytes(content)
    done = called(*MACHINE, "--hardware", tmp_path / "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1


def dimms(path):
    done = called(*MACHINE, "--hardware", path, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["inventory"]["host"]["memory_rate"]


def test_a_stated_rate_of_dimms_becomes_a_fact(tmp_path):
    path = tmp_path / "hardware.yml"
    path.write_text("dimms: 307.2 GB/s\n")
    assert dimms(path) == 307.2e9
    path.write_text("rack: 7\n")
    assert dimms(path) is None


@pytest.mark.parametrize("rate", ["fast", "0 GB/s", "-1 GB/s", "307.2", "307 MB/s"])
def test_a_rate_in_another_form_is_refused_in_one_line(rate, tmp_path):
    (tmp_path / "x").write_text(f"dimms: '{rate}'\n")
    done = called(*MACHINE, "--hardware", tmp_path / "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "give one such as 307.2 GB/s" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def quoted(word):
    return json.dumps(word, ensure_ascii=False)


WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1).filter(
    lambda word: word not in ("~", "null", "Null", "NULL")
)


@settings(max_examples=25, phases=[Phase.generate])
@given(
    st.dictionaries(st.just("x-").flatmap(lambda own: WORDS.map(own.__add__)), WORDS, max_size=3)
)
def test_any_statement_reads_back(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("hardware") / "hardware.yml"
    path.write_text("".join(f"{quoted(one)}: {quoted(values[one])}\n" for one in values), "utf-8")
    if values:
        assert stated(path) == values
        again = called(*MACHINE, "--hardware", path, "--yaml").stdout
        path.write_text(again, encoding="utf-8")
        assert stated(path) == values
