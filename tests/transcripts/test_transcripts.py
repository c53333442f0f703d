"""What people see: each transcript's commands print what it says."""

import pytest

from transcript_kit import HERE, check, transcripts


@pytest.mark.parametrize("name", transcripts())
def test_transcript(name, tmp_path):
    check(HERE / name, tmp_path)
