"""Runs of one recipe against each other, query by query: what the letters behind measured values stand on."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.errors import InputError
from rnnreranker.regress.published_runs import Measured
from rnnreranker.regress.recipe import Recipe

if TYPE_CHECKING:
    from rnnreranker.runs import Run


def with_pairs(measured: Sequence[Measured], recipes: Mapping[str, Recipe], folder: Path) -> list[Measured]:
    """The same entries, each with its paired comparisons with the others of its recipe in `pairs`.

    The paired two-sided t-test over the judged topics, for each protocol, in the measures that both runs have; Holm's
    family is all of a protocol.

    Args:
        measured: what `measure_run` gave, each condition once.
        recipes: by name.
        folder: that the files of the runs are named relative to.

    Raises:
        InputError: a run file that is not the one that was measured.
    """
    sizes = Counter(entry.spec for entry in measured)
    found: dict[tuple[str, str], list[dict[str, object]]] = {}
    for spec in (name for name, size in sizes.items() if size > 1):
        mine = [entry for entry in measured if entry.spec == spec]
        for protocol in recipes[spec].protocols:
            for entry, pair in _pairs(mine, recipes[spec], protocol, folder):
                found.setdefault((spec, entry.condition), []).append(pair)
    return [replace(entry, pairs=found.get((entry.spec, entry.condition), [])) for entry in measured]


def _pairs(
    measured: Sequence[Measured], recipe: Recipe, protocol: str, folder: Path
) -> list[tuple[Measured, dict[str, object]]]:
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.evaluate import evaluate
    from rnnreranker.evaluate.comparison import holm, paired_t_test

    measures = [name for name in recipe.measures if sum(name in entry.values[protocol] for entry in measured) > 1]
    if not measures:
        return []
    runs = {entry.condition: _run(entry, folder) for entry in measured}
    scores = evaluate(runs, load_qrels(recipe.qrels), measures, protocol)
    tested = [
        (one, other, name)
        for one, other in combinations(range(len(measured)), 2)
        for name in measures
        if name in measured[one].values[protocol] and name in measured[other].values[protocol]
    ]
    columns = [measures.index(name) for _, _, name in tested]
    p = [
        paired_t_test(scores.values[one, :, column], scores.values[other, :, column])
        for (one, other, _), column in zip(tested, columns, strict=True)
    ]
    pairs = []
    for (one, other, name), p_holm in zip(tested, holm(p), strict=True):
        for this, that in ((one, other), (other, one)):
            with_what = {"condition": measured[that].condition, "sha256": measured[that].sha256}
            about = {"protocol": protocol, "measure": name, "p_holm": round(p_holm, 6)}
            pairs.append((measured[this], {**with_what, **about}))
    return pairs


def _run(entry: Measured, folder: Path) -> Run:
    """The run that was measured.

    Raises:
        InputError: the file has another content by now.
    """
    from rnnreranker.runs import Run

    found = hashlib.sha256((folder / entry.file).read_bytes()).hexdigest()
    if found != entry.sha256:
        raise InputError(
            f"{folder / entry.file}: sha256 {found[:12]}, but {entry.spec} {entry.condition} was measured on "
            f"{entry.sha256[:12]}; the run changed meanwhile: measure it again"
        )
    return Run.read(folder / entry.file)
