"""Measures by their ir-measures names."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, argument, nearest

if TYPE_CHECKING:
    import ir_measures

LEAST_HITS, WITHOUT_CUTOFF = 100, 1000  # documents retrieved for measures at least, and for those without a cutoff
BETWEEN = re.compile(r"(?:\s|,(?!\d))+(?![^()]*\))")  # outside parentheses; trec_eval writes P.5,10


def parse_measures(names: str | Iterable[str | ir_measures.Measure]) -> list[ir_measures.Measure]:
    """The measures of names such as "nDCG@10 RR@10 P(rel=2)@5" or trec_eval's "map P.5", in order, each once.

    names: one text with white space or commas, or a sequence of names or measures.

    Raises:
        InputError: no names; all names that ir-measures does not know or cannot measure here.

    >>> parse_measures("nDCG@10, P(rel=2)@5 nDCG@10")
    [nDCG@10, P(rel=2)@5]
    >>> parse_measures("map recip_rank ndcg_cut_10 recall.1000")
    [AP, RR, nDCG@10, R@1000]
    """
    import ir_measures

    if isinstance(names, str):
        names = [name for name in BETWEEN.split(names) if name]
    measures: list[ir_measures.Measure] = []
    problems = []
    for name in names:
        try:
            if not isinstance(name, str | ir_measures.measures.Measure):
                raise ValueError(f"{type(name).__name__}; expected a name or a measure of ir-measures")
            parsed = _parsed(name) if isinstance(name, str) else [name]
            for measure in parsed:
                measure.validate_params()
                if measure.params.get("cutoff", 1) < 1:
                    raise ValueError("the cutoff is at least 1")
                if not ir_measures.DefaultPipeline.supports(measure):
                    raise ValueError("no installed package measures it (see the documentation of ir-measures)")
        except NameError:
            known = {one.casefold(): str(of.NAME) for one, of in ir_measures.measures.registry.items()}
            word = re.split(r"[(@\d]", str(name))[0]
            hint = nearest(known.get(word.casefold(), word), known.values())
            problems.append(f"{name}: no such measure; {hint}")
        except (AssertionError, ValueError, TypeError) as error:
            reason = re.sub(r"invalid param cutoff=<object.*", "the cutoff is missing, as in @10", str(error))
            if reason.startswith("problem parsing"):
                reason = "not written like a measure; expected Name(parameter=value)@cutoff"
            problems.append(f"{name}: {reason}")
        else:
            measures += [measure for measure in parsed if name_of(measure) not in map(name_of, measures)]
    if problems:
        raise InputError("measures: " + "; ".join(problems))
    if not measures:
        raise InputError('measures: none given; expected names such as "nDCG@10 RR@10"')
    return measures


def _parsed(name: str) -> list[ir_measures.Measure]:
    """The measures of a name of ir-measures or trec_eval, `ndcg_cut_5,10`; NameError, ValueError: unknown."""
    import ir_measures

    try:
        return [ir_measures.parse_measure(name)]
    except (NameError, ValueError):
        with contextlib.suppress(ValueError), contextlib.redirect_stdout(sys.stderr):  # it prints what it leaves out
            return ir_measures.parse_trec_measure(name)
        raise


def name_of(measure: ir_measures.Measure) -> str:
    """The name of a measure as ir-measures spells it, with a typed level: P(rel=1)@5 is not P@5 here.

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
    """The cutoff of a measure; 0 if its name has none.

    >>> cutoff_of("P(rel=2)@10"), cutoff_of("AP")
    (10, 0)
    """
    return int(parse_measures([measure])[0].params.get("cutoff", 0))


def notice_cut(measures: str | Iterable[str | ir_measures.Measure], hits: int) -> None:
    """Report the measures whose cutoff is below the depth of the runs, `hits`."""
    if deeper := [str(one) for one in parse_measures(measures) if cutoff_of(one) > hits]:
        notice(f"{', '.join(deeper)}: computed on the first {hits} documents; raise {argument('hits')} to the cutoff")


def deepest_cutoff(measures: str | Iterable[str | ir_measures.Measure]) -> int:
    """How many documents to retrieve for measures: the deepest cutoff, at least 100; 1000 without a cutoff.

    >>> deepest_cutoff("nDCG@10 RR@10"), deepest_cutoff("R@500"), deepest_cutoff("nDCG@10 AP")
    (100, 500, 1000)
    """
    return max(LEAST_HITS, *(cutoff_of(measure) or WITHOUT_CUTOFF for measure in parse_measures(measures)))
