"""Campaigns: `make test` runs a seeded subset of the fuzz cases, `make test-long` all of them."""

import os

from hypothesis import settings

# No deadline: a loaded machine is slow, not wrong.
settings.register_profile("subset", derandomize=True, deadline=None, database=None)
settings.register_profile("full", max_examples=5000, deadline=None, database=None)
settings.load_profile(os.environ.get("LINKGAUGE_CAMPAIGN", "subset"))
