"""A fixture for all rules."""

import pytest

from tests.decisions.given import Rules


@pytest.fixture
def rules() -> Rules:
    return Rules()
