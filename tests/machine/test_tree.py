"""Files below a root are read through links, and never outside it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.machine.tree import Captured, Disk

FILES = {"a/b/file": b"content\n", "a/other": b"\xff\x00"}
LINKS = {
    "near": "a/b",
    "a/up": "../a/b/file",
    "absolute": "/a/b",
    "beyond": "../../../a/b",
    "twice": "near/file",
    "nowhere": "a/gone",
    "loop": "pool",
    "pool": "loop/x",
    "self/here": ".",
}


@pytest.fixture(params=["memory", "folder"])
def root(request, tmp_path):
    if request.param == "memory":
        return Captured(FILES, LINKS)
    (tmp_path / "secret").write_bytes(b"of the machine that reads")
    folder = tmp_path / "root"
    for path, content in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    for path, target in LINKS.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(target)
    (folder / "secret").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("../secret")
    return Disk(folder)


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("a/b/file", "a/b/file"), ("/near/file", "a/b/file"), ("a/up", "a/b/file"),
        ("absolute/file", "a/b/file"), ("beyond/file", "a/b/file"), ("twice", "a/b/file"),
        ("self/here/here/../a/b", "a/b"), ("near/../other", "a/other"), ("nowhere", None),
        ("loop", None), ("a/gone", None), ("a/other/below", None), ("secret", None), ("up", None),
    ],
)  # fmt: skip
def test_links_lead_within_the_root(root, path, real):
    if isinstance(root, Captured) or path not in ("secret", "up"):
        assert root.resolve(path) == real
    assert root.content(path) == FILES.get(real)


def test_folders_are_listed_behind_links(root):
    for path in ("near", "a/b", "absolute", "beyond", "self/here/../a/b"):
        assert root.names(path) == ["file"]
    assert sorted(root.names("a")) == ["b", "other", "up"]
    assert root.names("loop") == root.names("a/other") == []


def test_a_link_is_named_by_where_it_leads(root):
    assert root.link_name("nowhere") == "gone"
    assert root.link_name("/twice") == "file"
    assert root.link_name("a") is None
    assert root.link_name("gone") is None


NAMES = st.sampled_from(["a", "b", "c", "a/b", "b/a", "a/c"])
TARGET = st.text(st.sampled_from("abc./"), max_size=8)


@given(st.dictionaries(NAMES, TARGET), st.dictionaries(NAMES, st.just(b"x")), TARGET)
def test_any_links_resolve_to_a_path_without_links_or_to_none(links, files, path):
    root = Captured(files, links)
    real = root.resolve(path)
    if real is not None:
        steps = real.split("/") if real else []
        assert not {"/".join(steps[:end]) for end in range(1, len(steps) + 1)} & set(links)
        assert root.resolve(real) == real
