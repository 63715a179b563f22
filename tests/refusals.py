"""What input is refused with."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rnnreranker.base.errors import InputError


def refusal(said: str) -> Any:
    """Expects an InputError in whose message this regular expression is found."""
    return pytest.raises(InputError, match=said)


def refusal_with(text: str) -> Any:
    """Expects an InputError in whose message this text stands as it is."""
    return refusal(re.escape(text))
