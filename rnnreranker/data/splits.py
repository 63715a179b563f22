"""Judged questions in parts for training, validation and test, by a hash of their text: paper 004's two settings.

A split is SETTING-FOLD-PART, as `cold-1-train`. Questions of the same text share a part. The texts, by SHA-256, are cut
into fifths; fold k of 4 is

- standard: fifth k for the test, k + 1 for validation, the others for training;
- cold: fifth k for training, k + 1 for validation, the others for the test.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint

SETTINGS = ("standard", "cold")
FOLDS = 4
PARTS = ("train", "validation", "test")
FIFTHS = 5
EXPECTED = f"{' or '.join(SETTINGS)}, 1 to {FOLDS}, and {', '.join(PARTS)}, as cold-1-train"


def by_hash(ids: Iterable[str], *salt: Any) -> list[str]:
    """Ids in an order by their hash with a salt, whatever their own order."""
    return sorted(ids, key=lambda one: (fingerprint(*salt, one), one))


def split_names() -> list[str]:
    """All names, in order."""
    return [f"{setting}-{fold}-{part}" for setting in SETTINGS for fold in range(1, FOLDS + 1) for part in PARTS]


def is_split(name: str) -> bool:
    """Whether a name is one of these splits.

    >>> is_split("cold-1-train"), is_split("standard-9-dev"), is_split("dev")
    (True, False, False)
    """
    return name in split_names()


def parts_of(questions: Mapping[str, str], source: str = "topics") -> dict[str, list[str]]:
    """Name of a split → ids of its questions, in the order of their hashes; questions: id → text.

    Raises:
        InputError: fewer than five different texts; names the source.
    """
    asked: dict[str, list[str]] = {}
    for qid in sorted(questions):
        text = " ".join(unicodedata.normalize("NFKC", questions[qid]).casefold().split())
        asked.setdefault(hashlib.sha256(text.encode()).hexdigest(), []).append(qid)
    if len(asked) < FIFTHS:
        said = f"{len(asked)} different questions with a relevant document"
        raise InputError(f"{source}: {said}; five parts need {FIFTHS} or more")
    ordered = [asked[key] for key in sorted(asked)]
    fifth_of = {qid: rank * FIFTHS // len(ordered) for rank, own in enumerate(ordered) for qid in own}
    parts: dict[str, list[str]] = {}
    for name in split_names():
        setting, fold, part = name.split("-")
        role = {int(fold) - 1: "test" if setting == "standard" else "train", int(fold): "validation"}
        other = "train" if setting == "standard" else "test"
        parts[name] = [qid for qid, fifth in fifth_of.items() if role.get(fifth, other) == part]
    return parts
