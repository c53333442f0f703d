"""Files below a root are read through links, and never outside it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.machine.tree import Captured, link_name, names_in, read_bytes, resolve

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
    return folder


@pytest.mark.parametrize(
    ("path", "real"),
    [
        *((path, "a/b/file") for path in ("a/b/file", "/near/file", "a/up", "absolute/file",
                                          "beyond/file", "twice")),
        ("self/here/here/../a/b", "a/b"),
        ("near/../other", "a/other"),
        *((path, None) for path in ("nowhere", "loop", "a/gone", "a/other/below", "secret", "up")),
    ],
)  # fmt: skip
def test_links_lead_within_the_root(root, path, real):
    if isinstance(root, Captured) or path not in ("secret", "up"):
        assert resolve(root, path) == real
    assert read_bytes(root, path) == FILES.get(real)


def test_folders_are_listed_behind_links(root):
    for path in ("near", "a/b", "absolute", "beyond", "self/here/../a/b"):
        assert names_in(root, path) == ["file"]
    assert sorted(names_in(root, "a")) == ["b", "other", "up"]
    assert names_in(root, "loop") == names_in(root, "a/other") == []


def test_a_link_is_named_by_where_it_leads(root):
    assert link_name(root, "nowhere") == "gone"
    assert link_name(root, "/twice") == "file"
    assert link_name(root, "a") is None
    assert link_name(root, "gone") is None


NAMES = st.sampled_from(["a", "b", "c", "a/b", "b/a", "a/c"])
TARGET = st.text(st.sampled_from("abc./"), max_size=8)


@given(st.dictionaries(NAMES, TARGET), st.dictionaries(NAMES, st.just(b"x")), TARGET)
def test_any_links_resolve_to_a_path_without_links_or_to_none(links, files, path):
    root = Captured(files, links)
    real = resolve(root, path)
    if real is not None:
        steps = real.split("/") if real else []
        assert not {"/".join(steps[:end]) for end in range(1, len(steps) + 1)} & set(links)
        assert resolve(root, real) == real
