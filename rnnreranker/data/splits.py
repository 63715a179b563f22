"""Judged questions in parts for training, validation and test, by a hash of their text: paper 004's two settings.

A split is SETTING-FOLD-PART, as `cold-1-train`. Questions of the same text share a part. The texts, by SHA-256, are cut
into fifths; fold k of 4 is

- standard: fifth k for the test, k + 1 for validation, the others for training;
- cold: fifth k for training, k + 1 for validation, the others for the test.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home, file_digest, fingerprint, folder_written_whole
from rnnreranker.data.records import read_qrels, read_topics

SETTINGS = ("standard", "cold")
FOLDS = 4
PARTS = ("train", "validation", "test")
FIFTHS = 5
EXPECTED = f"{' or '.join(SETTINGS)}, 1 to {FOLDS}, and {', '.join(PARTS)}, as cold-1-train"
RULES = 1  # part of the folder's name: increase it when the same questions get other parts
_WRITTEN_SO = re.compile(rf"({'|'.join(SETTINGS)})-([^-:/]*)-([^-:/]*)")


def is_split(name: str) -> bool:
    """Whether a name has the form of these splits; `qrels_of` checks that it exists.

    >>> is_split("cold-1-train"), is_split("standard-9-dev"), is_split("dev")
    (True, True, False)
    """
    return bool(_WRITTEN_SO.fullmatch(name))


def split_names() -> list[str]:
    """All names, in order."""
    return [f"{setting}-{fold}-{part}" for setting in SETTINGS for fold in range(1, FOLDS + 1) for part in PARTS]


def parts_of(questions: Mapping[str, str]) -> dict[str, list[str]]:
    """Name of a split → ids of its questions, in the order of their hashes; questions: id → text.

    Raises:
        InputError: fewer than five different texts.
    """
    asked: dict[str, list[str]] = {}
    for qid in sorted(questions):
        text = " ".join(unicodedata.normalize("NFKC", questions[qid]).casefold().split())
        asked.setdefault(hashlib.sha256(text.encode()).hexdigest(), []).append(qid)
    if len(asked) < FIFTHS:
        raise InputError(f"{len(asked)} different questions with a relevant document; five parts need {FIFTHS} or more")
    fifths: list[list[str]] = [[] for _ in range(FIFTHS)]
    for rank, key in enumerate(sorted(asked)):
        fifths[rank * FIFTHS // len(asked)] += asked[key]
    parts: dict[str, list[str]] = {}
    for setting in SETTINGS:
        for fold in range(1, FOLDS + 1):
            rest = [qid for number, fifth in enumerate(fifths) if number not in (fold - 1, fold) for qid in fifth]
            small, large = ("test", "train") if setting == "standard" else ("train", "test")
            own = {small: fifths[fold - 1], "validation": fifths[fold], large: rest}
            parts |= {f"{setting}-{fold}-{part}": own[part] for part in PARTS}
    return parts


def qrels_of(split: str, qrels: Path, queries: Path) -> Path:
    """The file with the judgements of a split; the first call writes all splits.

    Args:
        qrels: questions without a relevant document are in no part; queries: the topics of all others.

    Raises:
        InputError: an unknown split, too few questions, a question without a text, a malformed file.
    """
    if split not in split_names():
        raise InputError(f"{split}: no such split; expected {EXPECTED}")
    target = cache_home() / "data" / "splits" / fingerprint(RULES, file_digest(qrels), file_digest(queries))
    if not target.is_dir():
        judged = read_qrels(qrels)
        topics = read_topics(queries)
        answered = dict.fromkeys(qid for qid, _, grade, _ in judged if grade > 0)
        if lacking := [qid for qid in answered if qid not in topics]:
            raise InputError(f"{queries}: no question {lacking[0]}, which {qrels} judges; expected all that it judges")
        try:
            parts = parts_of({qid: topics[qid] for qid in answered})
        except InputError as error:
            raise InputError(f"{qrels}: {error}") from None
        lines: dict[str, list[str]] = {}
        for qid, docid, grade, _ in judged:
            lines.setdefault(qid, []).append(f"{qid}\t{docid}\t{grade}\n")
        with folder_written_whole(target) as folder:
            for name, qids in parts.items():
                content = "query-id\tcorpus-id\tscore\n" + "".join(line for qid in qids for line in lines[qid])
                (folder / f"{name}.tsv").write_text(content, encoding="utf-8")
    return target / f"{split}.tsv"
