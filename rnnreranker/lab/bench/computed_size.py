"""What collections too large for this machine would take: computed from what was measured, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rnnreranker.base.command import cores
from rnnreranker.base.process.machine import memory_gb
from rnnreranker.lab.bench.summaries import slope

# name, documents, training queries with judgements
COLLECTIONS = (("MS MARCO v1 passages", 8_841_823, 502_939), ("MS MARCO v2 passages", 138_364_198, 277_144))
LARGER = (16, 128.0)  # cores and GB of a machine that is not this one
UNITS = ("processor_s", "elapsed_s", "disk_MB", "RssAnon_MB")
SAME_SIZE = ("labels", "batch")  # stages whose work is of as many candidates, however large the collection


def at_documents(rows: Sequence[dict[str, Any]], name: str, documents: int) -> float:
    """A cost at another number of documents, never less than the last: by the line of `grows`, or by its power.

    Args:
        rows: of one stage, by one thread, ascending; name: of the cost.

    >>> rows = [{"stage": "vectors", "documents": n, "disk_MB": cost} for n, cost in ((10, 9.0), (20, 4.0), (30, 5.0))]
    >>> at_documents(rows, "disk_MB", 130)
    15.0
    """
    last, (kind, steep) = rows[-1], grows(rows, name)
    beyond = documents - last["documents"]
    cost = last[name] * (documents / last["documents"]) ** steep if kind == "power" else last[name] + steep * beyond
    return float(max(last[name], cost))


def grows(rows: Sequence[dict[str, Any]], name: str) -> tuple[str, float]:
    """How a cost grows: ("line", a document more) or ("power", of the documents), between the two largest sizes.

    Args:
        rows, name: as in `at_documents`.
    """
    *_, first, last = rows
    if last["stage"] in SAME_SIZE and name != "RssAnon_MB":
        return "power", slope([first["documents"], last["documents"]], [first[name], last[name]])
    return "line", (last[name] - first[name]) / (last["documents"] - first["documents"])


def slopes(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What `grows` says of every cost of every stage; lines for a million documents more."""
    rows_of_slopes = []
    for stage, own in _stages(rows).items():
        for name in UNITS:
            if _known(own, name):
                kind, value = grows(own, name)
                row = {"stage": stage, "of": name, "from": own[-2]["documents"], "to": own[-1]["documents"]}
                rows_of_slopes.append(row | {"by": kind, "slope": value * 10**6 if kind == "line" else value})
    return rows_of_slopes


def computed(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hours, disk and memory of every stage of `COLLECTIONS`, on this machine and on a larger one.

    Args:
        rows: of `collection_size`.
    """
    made = []
    for name, documents, queries in COLLECTIONS:
        for stage, own in _stages(rows).items():
            cost = {unit: at_documents(own, unit, documents) if _known(own, unit) else None for unit in UNITS}
            share = queries / own[-1]["queries"] if stage == "labels" else 1
            spent, disk, memory = cost["processor_s"], cost["disk_MB"], cost["RssAnon_MB"]
            for count, there in ((cores(), memory_gb()), LARGER):
                row = {"collection": name, "documents": documents, "queries": queries, "stage": stage}
                row |= {"cores": count, "GB": there, "hours": None, "elapsed_s": None}
                if stage in ("encode", "labels"):
                    sharing = _sharing(rows) if stage == "labels" else 1
                    row["hours"] = None if spent is None else spent * share / 3600 / count / sharing
                else:
                    row["elapsed_s"] = cost["elapsed_s"]
                row |= {"disk_GB": None if disk is None else disk * share / 1000}
                row |= {"memory_GB": None if memory is None else memory / 1000}
                made.append(row | {"fits": "" if memory is None else "yes" if memory / 1000 <= there else "no"})
    return made


def _known(rows: Sequence[dict[str, Any]], name: str) -> bool:
    return all(row[name] is not None for row in rows)


def _stages(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The rows of every stage that one thread did at two sizes at least, ascending."""
    by_stage: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["by"] == "one thread":
            by_stage.setdefault(row["stage"], []).append(row)
    return {stage: own for stage, own in by_stage.items() if len({row["documents"] for row in own}) > 1}


def _sharing(rows: Sequence[dict[str, Any]]) -> float:
    """How much of their time Dask's workers saved: 1 = all that so many can; 1 where that was not measured."""
    for row in rows:
        if row["by"].startswith("dask"):
            alone = next(one for one in rows if one["stage"] == row["stage"] and one["documents"] == row["documents"])
            return min(1.0, alone["elapsed_s"] / row["elapsed_s"] / int(row["by"].split()[-1]))
    return 1.0
