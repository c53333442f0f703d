"""The Containerfile is pinned, and what it copies is there. `make try-container` builds it."""

import re
from pathlib import Path

from container_kit import expanded, instructions, stages

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text()


def test_lines_go_on_and_comments_do_not_count():
    text = "# a\nRUN one && \\\n    # between\n    two\n\nWORKDIR /x\n"
    assert list(instructions(text)) == [("RUN", "one && two"), ("WORKDIR", "/x")]
    assert expanded("a${B}c$D$E", {"B": "b", "D": "d"}) == "abcd"


def test_images_packages_and_archives_are_pinned():
    _, found = stages(TEXT)
    assert len(found) == 2
    days = {re.fullmatch(r"docker\.io/library/debian:(\w+)-(\d{8})-slim", one.image).groups()
            for one in found}  # fmt: skip
    ((suite, day),) = days
    archives = re.findall(r"snapshot\.debian\.org/archive/[\w-]+/(\d{8})T", TEXT)
    assert archives == [day] * 4
    assert set(re.findall(r" (bookworm|trixie)(?=[- ])", TEXT)) == {suite}
    for one in (one for stage in found for one in stage.instructions if one.word == "RUN"):
        for install in re.findall(r"pip install[^&]*", one.rest):
            hashed = "--require-hashes --no-deps --requirement constraints-hashes.txt"
            assert "--constraint constraints.txt" in install or hashed in install


def test_what_it_copies_is_there():
    _, found = stages(TEXT)
    copied = [one.rest.split()[:-1] for stage in found for one in stage.instructions
              if one.word == "COPY" and not one.rest.startswith("--from")]  # fmt: skip
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []
