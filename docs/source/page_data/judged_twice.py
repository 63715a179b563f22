"""How far the judges of the built-in collection agree, from what each of them gave."""

from __future__ import annotations

from rnnreranker.data.names import built_in_lines
from rnnreranker.data.qrels import load_qrels
from rnnreranker.evaluate.pool.pooling import Agreement, SheetRow, agreement

DECIDED = "qrels-decided.tsv"  # qid, docid, first, second and third grade of the pairs on which two rounds differ


def judged_twice(name: str) -> Agreement:
    """How far a second judge agrees with the first: on all of `pydoc`, on the part judged twice of `pydoc/shallow`."""
    judged = load_qrels(name)
    first = {(qid, docid): int(grade) for qid, docid, grade in judged.itertuples(index=False)}
    if name == "pydoc":
        second = dict(first)
        for qid, docid, *grades in decided():
            first[qid, docid], second[qid, docid] = int(grades[0]), int(grades[1])
    else:
        lines = [line.split() for _, line in built_in_lines(["qrels-shallow-second.txt"]) if line]
        second = {(qid, docid): int(grade) for qid, _, docid, grade in lines}
    return agreement(
        *([SheetRow(qid, docid, grade, name) for (qid, docid), grade in one.items()] for one in (first, second))
    )


def decided() -> list[list[str]]:
    """The pairs on which the two rounds differ, with the grade of a third judge, which counts."""
    return [line.split("\t") for _, line in built_in_lines([DECIDED]) if line]
