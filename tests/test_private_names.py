"""Names of other libraries that these may change without a word: here is where that is noticed."""

from __future__ import annotations

import pkgutil

import pytest

from rnnreranker.base.private import USED


@pytest.mark.parametrize("owner", USED)
def test_what_is_used_is_there(owner: str) -> None:
    pytest.importorskip(owner.partition(".")[0])
    lacking = [one for one in USED[owner] if not hasattr(pkgutil.resolve_name(owner), one)]
    assert not lacking, f"{owner} has no {lacking} any more: rnnreranker/base/private.py needs another way"
