"""Names of other libraries that these may change without a word: here is where that is noticed."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from rnnreranker.base import private

FILES = [module.name for module in pkgutil.iter_modules(private.__path__)]


@pytest.mark.parametrize("name", FILES)
def test_what_is_used_is_there(name: str) -> None:
    used = importlib.import_module(f"{private.__name__}.{name}").USED
    for owner, names in used.items():
        try:
            found = importlib.import_module(owner)
        except ModuleNotFoundError:
            package, _, attribute = owner.rpartition(".")
            pytest.importorskip(package.split(".")[0] if package else owner)
            found = getattr(importlib.import_module(package), attribute)
        for one in names:
            assert hasattr(found, one), (
                f"{owner} has no {one} any more: rnnreranker/base/private/{name}.py needs another way in this version"
            )
