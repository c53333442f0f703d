"""The commit that runs is read from the checkout's own files."""

import pytest

from linkgauge.machine.source import commit

HASH = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / ".git/refs/heads").mkdir(parents=True)
    package = tmp_path / "src/linkgauge"
    package.mkdir(parents=True)
    return tmp_path, package


def test_of_a_branch(checkout):
    folder, package = checkout
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/refs/heads/main").write_text(f"{HASH}\n")
    assert commit(package) == HASH


def test_of_a_packed_branch(checkout):
    folder, package = checkout
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/packed-refs").write_text(f"# pack-refs\n{HASH} refs/heads/main\n")
    assert commit(package) == HASH


def test_of_no_branch(checkout):
    folder, package = checkout
    (folder / ".git/HEAD").write_text(f"{HASH}\n")
    assert commit(package) == HASH


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "garbage", "ref: ../../etc/passwd"])
def test_what_is_no_commit_is_null(checkout, head):
    folder, package = checkout
    (folder / ".git/HEAD").write_text(head)
    assert commit(package) is None


def test_of_a_wheel_is_null(tmp_path):
    assert commit(tmp_path / "site-packages/linkgauge") is None
