"""Protocols: which grades are relevant, which judgements and topics count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.settings import setting

if TYPE_CHECKING:
    import ir_measures
    import pandas

PROTOCOLS = ("trec", "dl", "strict", "strict-dropped", "binary")
STRICT = ("strict", "strict-dropped")  # judgements below grade 2 are removed
MEASURES = "nDCG@10 RR@10"  # where none are named
protocol_setting = partial(
    setting, None, "which grades count (default: dl for the names of TREC DL, else trec)", one_of=lambda: [*PROTOCOLS]
)


@dataclass(frozen=True)
class Judged:
    """Measures and their judgements, {qid: {docid: grade}}; missing topics score 0."""

    measures: tuple[ir_measures.Measure, ...]
    grades: dict[str, dict[str, int]]


def protocol_of(qrels: pandas.DataFrame, protocol: str | None = None) -> str:
    """The given protocol, else `qrels.attrs["protocol"]` (of a name, `dl` for TREC DL), else `trec`.

    Raises:
        InputError: unknown protocol; one that needs grades of 2 or more if there are none.
    """
    if protocol is None:
        return str(qrels.attrs.get("protocol", "trec"))
    highest = int(qrels["relevance"].max())
    if highest < relevant_from(protocol) == 2:
        raise InputError(f"protocol {protocol} counts grades from 2 on, the highest here is {highest}; use trec")
    return protocol


def relevant_from(protocol: str) -> int:
    """The lowest grade that is relevant to binary measures; InputError for an unknown protocol."""
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol {protocol!r}; {nearest(protocol, PROTOCOLS)}")
    return 2 if protocol in ("dl", *STRICT) else 1


def topics_that_count(qrels: pandas.DataFrame, protocol: str) -> tuple[str, ...]:
    """The query ids that a protocol measures, in the order of the judgements."""
    if protocol == "strict-dropped":
        qrels = qrels[qrels["relevance"] >= relevant_from(protocol)]
    return tuple(dict.fromkeys(qrels["query_id"].tolist()))


def apply_protocol(measures: Sequence[ir_measures.Measure], qrels: pandas.DataFrame, protocol: str) -> list[Judged]:
    """The measures, grouped by the judgements that a protocol measures them on.

    Graded measures (without a parameter `rel`, such as nDCG) use grades as gains; binary measures (RR, AP, R, P, ...)
    count documents from some grade on as relevant:

    - `trec`: gains as judged; relevant from grade 1 on, as trec_eval and ir-measures do.
    - `dl`: gains as judged; relevant from grade 2 on, as NIST reports TREC Deep Learning.
    - `strict`: judgements below grade 2 are removed before every measure; 2 and 3 keep their gains (papers 000, 001). A
      topic without any such grade scores 0.
    - `strict-dropped`: as `strict`, but such a topic is dropped. The strict figures of both papers fit both: each topic
      of DL 2019 and 2020 has a passage of grade 2 or more.
    - `binary`: gain 1 from grade 1 on, else 0, for every measure: for grades that are codes, not an order.

    A typed level, as in `P(rel=1)@10`, stays. Judged@k counts documents with any judgement.

    Raises:
        InputError: `binary` with a typed level other than 1.
    """
    if protocol == "trec":
        return [Judged(tuple(measures), grades_of(qrels))]
    level = relevant_from(protocol)
    kept = qrels[qrels["relevance"] >= level] if protocol in STRICT else qrels
    relevant = _binarised(kept, level, keep_negative=protocol != "binary")
    graded = relevant if protocol == "binary" else kept

    frames = {"judged": qrels, "relevant": relevant, "graded": graded}
    for measure in measures:
        if protocol == "binary" and measure.params.get("rel", 1) != 1:
            raise InputError(f"{measure}: protocol binary has grades 0 and 1 only; leave the level out")
    named = [(_judgements_of(measure), measure) for measure in measures]
    members = {name: tuple(measure for group, measure in named if group == name) for name in frames}
    return [Judged(own, grades_of(frames[name])) for name, own in members.items() if own]


def _judgements_of(measure: ir_measures.Measure) -> str:
    """`judged`, `graded`, or `relevant` where the protocol sets the level."""
    if measure.NAME in ("Judged", "NumRet"):
        return "judged" if measure.NAME == "Judged" else "relevant" if measure.params.get("rel") == 1 else "graded"
    level = getattr(measure.SUPPORTED_PARAMS.get("rel"), "default", None)
    return "relevant" if level == 1 and "rel" not in measure.params else "graded"


def _binarised(qrels: pandas.DataFrame, level: int, keep_negative: bool) -> pandas.DataFrame:
    """Grades 1 from the level on, else 0; negative ones ("not judged" to infAP) may stay."""
    relevance = qrels["relevance"]
    ones = (relevance >= level).astype(int)
    return qrels.assign(relevance=ones.where(relevance >= 0, relevance) if keep_negative else ones)


def grades_of(qrels: pandas.DataFrame) -> dict[str, dict[str, int]]:
    """Query id → docid → grade."""
    grades: dict[str, dict[str, int]] = {}
    columns = (qrels[name].tolist() for name in ("query_id", "doc_id", "relevance"))
    for qid, docid, grade in zip(*columns, strict=True):
        grades.setdefault(qid, {})[docid] = grade
    return grades
