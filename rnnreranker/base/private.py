"""Names of other libraries that these do not call public, with the versions they were seen in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

USED = {  # of ir_datasets 0.5.9 to 0.5.11, CPython 3.11 to 3.13, transformers 5 (overridden by `FitTrainer`)
    "ir_datasets.registry": ("_registered",),
    "argparse.ArgumentParser": ("_get_optional_actions",),
    "transformers.Trainer": ("_load_from_checkpoint",),
}


def known_names(ir_datasets: Any) -> Iterable[str]:
    """The ids that `ir_datasets.load` takes; empty if the list is missing."""
    return list(getattr(ir_datasets.registry, "_registered", ()))


def flags_of_parser(parser: Any) -> list[str]:
    """The flags that a parser has."""
    return [flag for action in parser._get_optional_actions() for flag in action.option_strings]


def skipped_tokens(mask: Any) -> list[int]:
    """The ids of the tokens that a mask of late interaction of sentence-transformers 6.0 skips, ascending."""
    return [] if mask._skiplist_ids is None else sorted(mask._skiplist_ids.tolist())


def attention_of(model: Any) -> str:
    """A model's implementation of attention: eager, sdpa, …"""
    return str(model.config._attn_implementation)
