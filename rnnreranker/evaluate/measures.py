"""Measures by their ir-measures names, and the protocols that say which grades count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError, nearest

if TYPE_CHECKING:
    import ir_measures
    import pandas

PROTOCOLS = ("trec", "strict", "strict-dropped", "lenient", "binary")
STRICT = ("strict", "strict-dropped")  # judgements below grade 2 are removed
COMMON = ("nDCG", "RR", "AP", "R", "P", "Success", "Rprec", "Judged")
LEAST_HITS, WITHOUT_CUTOFF = 100, 1000  # documents retrieved for measures at least, and for those without a cutoff
BETWEEN = re.compile(r"[\s,]+(?![^()]*\))")  # white space or commas outside parentheses


@dataclass(frozen=True)
class Judged:
    """Measures with the judgements they are measured on.

    Attributes:
        measures: ir-measures measures.
        grades: {qid: {docid: grade}}; topics may be missing (they score 0).
    """

    measures: tuple[ir_measures.Measure, ...]
    grades: dict[str, dict[str, int]]


def parse_measures(names: str | Iterable[str | ir_measures.Measure]) -> list[ir_measures.Measure]:
    """The measures of names such as "nDCG@10 RR@10 P(rel=2)@5", in their order, each once.

    Args:
        names: one text with white space or commas between the names, or a sequence of names or measures.

    Raises:
        InputError: no names, or names that ir-measures does not know or cannot measure here: all of them at once.

    >>> parse_measures("nDCG@10, P(rel=2)@5 nDCG@10")
    [nDCG@10, P(rel=2)@5]
    """
    import ir_measures

    if isinstance(names, str):
        names = [name for name in BETWEEN.split(names) if name]
    measures: list[ir_measures.Measure] = []
    problems = []
    for name in names:
        try:
            measure = ir_measures.parse_measure(name) if isinstance(name, str) else name
            measure.validate_params()
            if measure.params.get("cutoff", 1) < 1:
                raise ValueError("the cutoff is at least 1")
            if not ir_measures.DefaultPipeline.supports(measure):
                raise ValueError("no installed package measures it (see the documentation of ir-measures)")
        except NameError:
            problems.append(f"{name}: no such measure; {_hint(str(name))}")
        except (AssertionError, ValueError, TypeError) as error:
            reason = re.sub(r"invalid param cutoff=<object.*", "the cutoff is missing, as in @10", str(error))
            if reason.startswith("problem parsing"):
                reason = "not written like a measure; expected Name(parameter=value)@cutoff"
            problems.append(f"{name}: {reason}")
        else:
            if name_of(measure) not in map(name_of, measures):
                measures.append(measure)
    if problems:
        raise InputError("measures: " + "; ".join(problems))
    if not measures:
        raise InputError('measures: none given; expected names such as "nDCG@10 RR@10"')
    return measures


def name_of(measure: ir_measures.Measure) -> str:
    """The name of a measure as ir-measures spells it, but with a level that was typed: P(rel=1)@5 is not P@5 here.

    >>> [name_of(measure) for measure in parse_measures("P@5 P(rel=1)@5 P(rel=1,judged_only=True)@5 AP(rel=1)")]
    ['P@5', 'P(rel=1)@5', 'P(rel=1,judged_only=True)@5', 'AP(rel=1)']
    """
    if measure.NAME == "NumRet" and measure.params.get("rel") == 1:
        return "NumRelRet"
    text = str(measure)
    if "rel" not in measure.params or re.search(r"\brel=", text):
        return text
    word, parameters, cutoff = re.fullmatch(r"(\w+)(?:\((.*)\))?(@.*)?", text).groups("")  # type: ignore[union-attr]
    return f"{word}(rel={measure.params['rel']}{',' if parameters else ''}{parameters}){cutoff}"


def cutoff_of(measure: str | ir_measures.Measure) -> int:
    """How deep a measure looks; 0 where its name does not say.

    >>> cutoff_of("P(rel=2)@10"), cutoff_of("AP")
    (10, 0)
    """
    return int(parse_measures([measure])[0].params.get("cutoff", 0))


def deepest_cutoff(measures: str | Iterable[str | ir_measures.Measure]) -> int:
    """How many documents to retrieve for measures: the deepest cutoff, 100 at least; 1000 for one without a cutoff.

    Raises:
        InputError: as `parse_measures`.

    >>> deepest_cutoff("nDCG@10 RR@10"), deepest_cutoff("R@500"), deepest_cutoff("nDCG@10 AP")
    (100, 500, 1000)
    """
    return max(LEAST_HITS, *(cutoff_of(measure) or WITHOUT_CUTOFF for measure in parse_measures(measures)))


def _hint(name: str) -> str:
    """What a wrong name may have meant: letter case and a forgotten @ first, then the names most like it."""
    from ir_measures.measures import registry

    word, cutoff = re.fullmatch(r"(.*?)(?:\(.*\))?@?(\d*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    cutoff = f"@{cutoff}" if cutoff else ""
    for known in registry:
        if known.casefold() == word.casefold():
            return f"did you mean {known}{cutoff}?"
    hint = nearest(word, registry)
    return hint if hint.startswith("did") else nearest(word, COMMON) + ", and the others of ir-measures"


def relevant_from(qrels: pandas.DataFrame, protocol: str) -> int:
    """The grade from which on a document is relevant to binary measures.

    Args:
        qrels: all judgements of a collection; those of a fold or a batch may happen to have low grades alone.
        protocol: one of PROTOCOLS.

    Raises:
        InputError: unknown protocol, a strict one without any grade of 2 or more.
    """
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol {protocol!r}; {nearest(protocol, PROTOCOLS)}")
    highest = int(qrels["relevance"].max())
    if protocol in STRICT and highest < 2:
        raise InputError(
            f"protocol {protocol} keeps grades from 2 on, the highest here is {highest}; use trec or binary"
        )
    return 2 if protocol in STRICT or (protocol == "trec" and highest >= 2) else 1


def topics_that_count(qrels: pandas.DataFrame, protocol: str) -> tuple[str, ...]:
    """The judged query ids that a protocol measures, in the order of the judgements."""
    if protocol == "strict-dropped":
        qrels = qrels[qrels["relevance"] >= relevant_from(qrels, protocol)]
    return tuple(dict.fromkeys(qrels["query_id"].tolist()))


def apply_protocol(
    measures: Sequence[ir_measures.Measure], qrels: pandas.DataFrame, protocol: str, level: int
) -> list[Judged]:
    """The measures, grouped by the judgements that a protocol measures them on.

    Graded measures (those of ir-measures without a parameter `rel`, such as nDCG) use grades as gains; binary measures
    (RR, AP, R, P, ...) count a document as relevant from some grade on:

    - `trec`: gains as judged; relevant from grade 2 on if any judgement is graded 2 or more, else from grade 1 on. This
      is how NIST reports TREC Deep Learning, and it leaves collections with grades 0 and 1 as they are.
    - `strict`: judgements below grade 2 are removed before every measure; 2 and 3 keep their gains (papers 000, 001).
      A topic without any such grade counts all the same, and scores 0.
    - `strict-dropped`: as `strict`, but such a topic is left out, as by a program that reads what is left of the
      qrels. The strict figures of both papers (000: Tables 1 and 3, 001: Tables 2 and 3) cannot tell the two apart:
      each of the 43 and 54 topics of DL 2019 and 2020 has a passage of grade 2 or more. The first with one that
      has none, 1103547, is DL 2021's set of documents.
    - `lenient`: gains as judged; relevant from grade 1 on.
    - `binary`: gain 1 from grade 1 on, else 0, for every measure: for collections whose grades are codes, not an order.

    A level that is typed, as in `P(rel=1)@10`, stays. Judged@k counts documents with any judgement.

    Args:
        measures: as `parse_measures` gives them.
        qrels: columns query_id, doc_id, relevance; of all topics or of some.
        protocol: one of PROTOCOLS.
        level: of all topics, see `relevant_from`.

    Raises:
        InputError: `binary` with a typed level other than 1.
    """
    kept = qrels[qrels["relevance"] >= level] if protocol in STRICT else qrels
    relevant = _binarised(kept, level, keep_negative=protocol != "binary")
    graded = relevant if protocol == "binary" else kept

    frames = {"judged": qrels, "relevant": relevant, "graded": graded}
    groups: dict[str, tuple[list[Any], pandas.DataFrame]] = {name: ([], frame) for name, frame in frames.items()}
    for measure in measures:
        if protocol == "binary" and measure.params.get("rel", 1) != 1:
            raise InputError(f"{measure}: protocol binary has grades 0 and 1 only; leave the level out")
        group = "judged" if measure.NAME == "Judged" else "relevant" if _is_binary(measure) else "graded"
        groups[group][0].append(measure)
    return [Judged(tuple(members), _nested(frame)) for members, frame in groups.values() if members]


def _is_binary(measure: ir_measures.Measure) -> bool:
    """Whether the measure asks what is relevant, and leaves the level to the protocol."""
    if measure.NAME == "NumRet":
        return measure.params.get("rel") == 1  # NumRelRet
    parameter = measure.SUPPORTED_PARAMS.get("rel")
    return parameter is not None and parameter.default == 1 and "rel" not in measure.params


def _binarised(qrels: pandas.DataFrame, level: int, keep_negative: bool) -> pandas.DataFrame:
    """Grades 1 from the level on, else 0; negative ones, which mean "not judged" to infAP, may stay."""
    relevance = qrels["relevance"]
    ones = (relevance >= level).astype(int)
    return qrels.assign(relevance=ones.where(relevance >= 0, relevance) if keep_negative else ones)


def _nested(qrels: pandas.DataFrame) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    columns = (qrels[name].tolist() for name in ("query_id", "doc_id", "relevance"))
    for qid, docid, grade in zip(*columns, strict=True):
        grades.setdefault(qid, {})[docid] = grade
    return grades
