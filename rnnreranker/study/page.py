"""The page of all studies: DIR.md and pictures from the records DIR/*.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.errors import InputError, require
from rnnreranker.pages import render, write_page
from rnnreranker.train.plots import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES = {"nDCG@10": "nDCG@10 of validation", "loss": "validation loss"}
FINDINGS = "findings.md"  # what a person concludes, put before the tables
KINDS = ("labels", "losses", "candidates")


def write_study_page(folder: Path) -> list[Path]:
    """Write the page beside the folder and pictures into it; the files written.

    Args:
        folder: with one JSON file a study, as `python -m rnnreranker.study --output` writes it; findings.md.

    Raises:
        InputError: no record in the folder, or a file that is none.
        MissingDependencyError: without matplotlib.
    """
    require("matplotlib", "plots", "'rnnreranker[plots]'")
    studies = [_read(path) for path in sorted(folder.glob("*.json"))]
    if not studies:
        raise InputError(f"{folder}: no study in this folder; expected files of python -m rnnreranker.study --output")
    studies.sort(key=lambda study: (KINDS.index(study["arms"]), study["name"]))
    written = []
    for study in studies:
        study["pictures"] = []
        for name, label in CURVES.items():
            if study["arms"] == "labels":
                path = folder / f"{study['name']}-{name.replace('@', '-')}.svg"
                written.append(save_figure(_curves(study["curves"], name, label), path))
                study["pictures"].append((label, f"{folder.name}/{path.name}"))
        if study["arms"] == "labels":
            path = folder / f"{study['name']}-positives.svg"
            written.append(save_figure(_positives(study["positives"]), path))
            study["pictures"].append(("probability of the positive", f"{folder.name}/{path.name}"))
        if study["arms"] == "candidates":
            path = folder / f"{study['name']}.svg"
            written.append(save_figure(_counts(study["rows"]), path))
            study["pictures"].append(("difference from the encoder as it was", f"{folder.name}/{path.name}"))
    page, found = folder.with_suffix(".md"), folder / FINDINGS
    findings = found.read_text(encoding="utf-8").strip() if found.is_file() else ""
    values = {"studies": studies, "table": table, "folder": folder.name, "findings": findings}
    write_page(page, render("study", "study.md.j2", **values))
    return [*written, page]


def table(study: Mapping[str, Any], group: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a study's table for a group of test queries: an arm a row, its values and differences."""
    rows = [row for row in study["rows"] if row["group"] == group]
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    first = measures[0]
    smoothing = study["arms"] == "labels"
    header = ["", *measures, f"{first} − base"] + ([f"{first} − CODER, same hyperparameters"] if smoothing else [])
    lines = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        of_arm = {row["measure"]: row for row in rows if row["arm"] == arm}
        against = of_arm[first]["against"]
        line = [arm, *(f"{of_arm[measure]['value']:.4f}" for measure in measures), _difference(against.get("base"))]
        if smoothing:
            others = [found for name, found in against.items() if name != "base"]
            line.append(_difference(others[0] if others else None))
        lines.append(line)
    return header, lines


def _difference(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "-"
    text = f"{found['difference']:+.4f} [{found['low']:+.4f}, {found['high']:+.4f}]"
    return f"{text}, p {found['p_holm']:.3f}"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        kind = found["arms"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: no record of a study; expected a file of python -m rnnreranker.study") from None
    if kind not in KINDS:
        raise InputError(f"{path}: arms {kind!r}; expected one of {', '.join(KINDS)}")
    groups = [row["group"] for row in found["rows"]]
    return found | {"name": path.stem, "groups": list(dict.fromkeys(groups))}


def _curves(found: Mapping[str, Mapping[str, Sequence[float]]], name: str, label: str) -> Figure:
    figure = new_figure()
    axes = figure.subplots()
    for place, (arm, curve) in enumerate(_own(found).items()):
        axes.plot(curve["step"], curve[name], marker="osv^Dx"[place % 6], markersize=4, label=arm)
    axes.set(xlabel="step", ylabel=label)
    axes.legend(frameon=False, fontsize=8)
    return figure


def _positives(found: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> Figure:
    figure = new_figure()
    axes = figure.subplots()
    own = _own(found)
    ranks, _, shares = zip(*next(iter(own.values()))["before"], strict=True)
    axes.plot(ranks, shares, color="0.5", linestyle="--", label="before")
    for place, (arm, when) in enumerate(own.items()):
        ranks, _, shares = zip(*when["after"], strict=True)
        axes.plot(ranks, shares, marker="osv^Dx"[place % 6], markersize=4, label=arm)
    axes.set(xscale="log", yscale="log", xlabel="rank of the positive, from", ylabel="its mean probability")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _counts(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Differences from the base against the number of candidates, with their intervals (001, Figure 5)."""
    figure = new_figure()
    axes = figure.subplots()
    every = [row for row in rows if row["group"] == "all" and row["against"]]
    for place, measure in enumerate(dict.fromkeys(row["measure"] for row in every)):
        of = [row for row in every if row["measure"] == measure]
        counts = [int(row["arm"].removeprefix("N = ")) * 1.03**place for row in of]  # beside each other
        found = [row["against"]["base"] for row in of]
        middle = [one["difference"] for one in found]
        spread = [[one["difference"] - one["low"] for one in found], [one["high"] - one["difference"] for one in found]]
        axes.errorbar(counts, middle, yerr=spread, marker="osv"[place % 3], markersize=4, capsize=2, label=measure)
    axes.axhline(0, color="0.5", linewidth=0.8)
    axes.set(xscale="log", xlabel="candidates a training query", ylabel="difference from the encoder as it was")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _own(found: Mapping[str, Any]) -> dict[str, Any]:
    """The arms under their own hyperparameters."""
    return {arm: value for arm, value in found.items() if not arm.endswith(", hparam")}
