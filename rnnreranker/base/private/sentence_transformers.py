"""Of sentence-transformers 6.0: the prompt that a model puts before texts, and the tokens that MaxSim skips."""

from __future__ import annotations

from typing import Any

USED = {
    "sentence_transformers.MultiVectorEncoder": ("_resolve_prompt",),
    "sentence_transformers.CrossEncoder": ("_resolve_prompt",),
}


def prompt_of(model: Any, name: str | None = None) -> str:
    """What a model puts before texts of a name, or of none; "" = nothing."""
    return model._resolve_prompt(None, name) or ""


def skipped_tokens(mask: Any) -> list[int]:
    """The ids of the tokens that a mask of late interaction leaves out, ascending."""
    return [] if mask._skiplist_ids is None else sorted(mask._skiplist_ids.tolist())
