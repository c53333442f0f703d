"""The backends that the suite runs over."""

import pytest

from conformance.subjects import SUBJECTS, Subject
from linkgauge.model.errors import Unsupported


@pytest.fixture(scope="module", params=SUBJECTS, ids=lambda subject: subject.__name__)
def subject(request):
    try:
        opened: Subject = request.param()
    except Unsupported as reason:
        pytest.skip(str(reason))
    yield opened
    opened.backend.close()
