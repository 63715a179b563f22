"""Pools for judgement: the best documents of several runs as a sheet to fill in, and the sheet back as judgements."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text, write_atomically
from rnnreranker.runs import Run

GRADES = (0, 1, 2, 3)
SHOWN = 5  # problems listed in one message


@dataclass(frozen=True)
class SheetRow:
    """One line of a sheet, filled in or not: grade None = not judged yet."""

    qid: str
    docid: str
    grade: int | None
    where: str  # file:line


@dataclass(frozen=True)
class Agreement:
    """How far two judges agree on the n pairs that both judged.

    Attributes:
        pairs: n.
        equal: share of pairs with the same grade.
        within_one: share of pairs with grades at most one apart.
        kappa: Cohen's kappa with linear weights: 1 - observed / expected mean difference of the grades; 1 = perfect,
            0 = as by chance. Where chance alone gives no difference (both judges use one and the same grade) it is 1.
    """

    pairs: int
    equal: float
    within_one: float
    kappa: float


def pool(runs: Sequence[Run], depth: int, topics: Iterable[str], seed: int = 0) -> dict[str, list[str]]:
    """{qid: docids to judge}: the first `depth` of every run, each once, shuffled.

    The shuffle depends on seed and qid alone: neither the order of the runs nor the ranks show.

    Args:
        runs: one or more.
        depth: ranks taken of every run, from 1.
        topics: query ids in the order they are to be judged; those no run has entries for are left out.
        seed: of the shuffle.

    Raises:
        InputError: no runs, depth below 1, a query of a run that is no topic.
    """
    if not runs:
        raise InputError("no runs: expected at least one to pool")
    if depth < 1:
        raise InputError(f"depth={depth}: expected an integer >= 1")
    topics = list(topics)
    known = set(topics)
    for number, run in enumerate(runs, 1):
        strange = [qid for qid in run if qid not in known]
        if strange:
            raise InputError(
                f"run {number}: {len(strange)} of its queries are no topics (first: {', '.join(strange[:3])}); "
                "give the topics that the runs were made with"
            )
    heads = [run.head(depth) for run in runs]
    pooled = {}
    for qid in topics:
        docids = sorted({docid for run in heads if qid in run for docid, _ in run[qid]})
        if docids:
            order = np.random.default_rng([seed, *hashlib.sha256(qid.encode()).digest()]).permutation(len(docids))
            pooled[qid] = [docids[row] for row in order]
    return pooled


def write_sheet(
    path: str | Path,
    pooled: Mapping[str, Sequence[str]],
    topics: Mapping[str, str],
    narratives: Mapping[str, str],
    texts: Mapping[str, str],
) -> None:
    """Write a tab-separated sheet: qid, query, narrative (if any topic has one), docid, text, and an empty grade.

    Tabs and line ends in texts become spaces, so that a row is a line.

    Raises:
        InputError: a pooled docid without a text, a path that cannot be written.
    """
    lost = sorted({docid for docids in pooled.values() for docid in docids if docid not in texts})
    if lost:
        raise InputError(
            f"{len(lost)} pooled documents have no text (first: {', '.join(lost[:3])}); "
            "give the documents that the runs were made from"
        )
    with_narrative = bool(narratives)
    header = ["qid", "query", *(["narrative"] if with_narrative else []), "docid", "text", "grade"]
    lines = ["\t".join(header)]
    for qid, docids in pooled.items():
        topic = [qid, topics[qid], *([narratives.get(qid, "")] if with_narrative else [])]
        lines.extend("\t".join([*map(_one_line, topic), docid, _one_line(texts[docid]), ""]) for docid in docids)
    with write_atomically(path) as stream:
        stream.write(("\n".join(lines) + "\n").encode())


def read_sheets(paths: Sequence[str | Path]) -> list[SheetRow]:
    """The rows of one or more sheets, in their order.

    Columns go by the names in the first line, so a judge may add columns or move them; qid, docid and grade are needed.

    Raises:
        InputError: a missing column, a line with other columns than the first, a grade that is none of 0 to 3, a pair
            that stands twice: several at once, each with file:line.
    """
    rows: list[SheetRow] = []
    problems: list[str] = []
    seen: dict[tuple[str, str], str] = {}
    for path in paths:
        for row in _rows(str(path), problems):
            if (row.qid, row.docid) in seen:
                before = seen[row.qid, row.docid]
                problems.append(f"{row.where}: query {row.qid}, docid {row.docid} a second time (first: {before})")
            seen[row.qid, row.docid] = row.where
            rows.append(row)
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise InputError("; ".join(problems[:SHOWN]) + more)
    return rows


def _rows(path: str, problems: list[str]) -> Iterable[SheetRow]:
    lines = read_text(path, "judgement sheet").split("\n")
    header = [name.strip() for name in lines[0].rstrip("\r").split("\t")]
    lost = [name for name in ("qid", "docid", "grade") if name not in header]
    if lost:
        raise InputError(f"{path}:1: no column {', '.join(lost)}; expected the first line of a sheet: qid, ..., grade")
    for number, line in enumerate(lines[1:], 2):
        columns = line.rstrip("\r").split("\t")
        where = f"{path}:{number}"
        if not any(column.strip() for column in columns):
            continue
        if len(columns) == len(header) - 1 and header[-1] == "grade":
            columns.append("")  # an editor has cut the last tab
        if len(columns) != len(header):
            problems.append(f"{where}: {len(columns)} columns; expected {len(header)}, as in the first line")
            continue
        cells = dict(zip(header, (column.strip() for column in columns), strict=True))
        if cells["grade"] and cells["grade"] not in map(str, GRADES):
            problems.append(f"{where}: grade {cells['grade']!r}; expected 0, 1, 2 or 3, or nothing")
            continue
        yield SheetRow(cells["qid"], cells["docid"], int(cells["grade"]) if cells["grade"] else None, where)


def write_qrels(path: str | Path, rows: Iterable[SheetRow]) -> int:
    """Write the judged rows as TREC qrels (`qid 0 docid grade`); the number of lines.

    Raises:
        InputError: a path that cannot be written.
    """
    lines = [f"{row.qid} 0 {row.docid} {row.grade}\n" for row in rows if row.grade is not None]
    with write_atomically(path) as stream:
        stream.write("".join(lines).encode())
    return len(lines)


def agreement(first: Iterable[SheetRow], second: Iterable[SheetRow]) -> Agreement:
    """How far two judges agree on the pairs that both judged; InputError: no pair was judged by both."""
    grades = {(row.qid, row.docid): row.grade for row in second if row.grade is not None}
    pairs = [
        (row.grade, grades[row.qid, row.docid])
        for row in first
        if row.grade is not None and (row.qid, row.docid) in grades
    ]
    if not pairs:
        raise InputError("no document was judged by both; expected two sheets of the same pool")
    counts = np.zeros((len(GRADES), len(GRADES)))
    for a, b in pairs:
        counts[a, b] += 1
    shares = counts / len(pairs)
    apart = np.abs(np.subtract.outer(GRADES, GRADES))
    expected = float((apart * np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum())
    observed = float((apart * shares).sum())
    return Agreement(
        pairs=len(pairs),
        equal=float(np.trace(shares)),
        within_one=float(shares[apart <= 1].sum()),
        kappa=1 - observed / expected if expected > 0 else 1.0,
    )


def _one_line(text: str) -> str:
    return re.sub(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", text).strip()
