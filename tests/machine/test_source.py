"""The commit that runs is read from the checkout's own files."""

import pytest

import linkgauge
from linkgauge.machine.captures.capture import capture, read_manifest
from machine_kit import captured, seen

HASH = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{HASH}\n"}, HASH),
        ({"HEAD": "ref: refs/heads/a\n", "packed-refs": f"# x\n{HASH} refs/heads/a\n"}, HASH),
        ({"HEAD": f"{HASH}\n"}, HASH),
        ({"HEAD": ""}, None),
        ({"HEAD": "ref: refs/heads/none"}, None),
        ({"HEAD": "garbage"}, None),
        ({"HEAD": "ref: ../../etc/passwd"}, None),
        ({}, None),  # a wheel
    ],
)
def test_the_commit_is_that_of_the_checkout(files, found, tmp_path, monkeypatch):
    package = tmp_path / "src/linkgauge"
    package.mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".git" / name).write_text(text)
    monkeypatch.setattr(linkgauge, "__file__", str(package / "__init__.py"))
    tree = captured({})
    assert read_manifest(capture(tree, seen(tree))).commit == found
