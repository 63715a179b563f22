"""Curves of a training: loss and measure by step, the positives' probability by rank; SVG files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError, require
from rnnreranker.labels.report.plots import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES = {"loss": "validation loss", "kl": "KL to the targets", "RR@10": "RR@10", "nDCG@10": "nDCG@10"}


def write_plots(folder: str | os.PathLike[str], record: Mapping[str, Any]) -> list[Path]:
    """Draw a training (000 Figures 2, 10, 11); the files written.

    Args:
        folder: made where it is missing.
        record: what its `training.json` holds.

    Raises:
        MissingDependencyError: without matplotlib.
        InputError: a folder that cannot be written.
    """
    require("matplotlib", "plots", "'rnnreranker[plots]'")
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error})") from None
    figures = {name: new_figure() for name in CURVES if name in record["history"][0]}
    for name, figure in figures.items():
        axes = figure.subplots()
        axes.plot([one["step"] for one in record["history"]], [one[name] for one in record["history"]], marker=".")
        axes.set(xlabel="step", ylabel=CURVES[name])
    if "positives" in record:
        axes = figures.setdefault("positives", new_figure()).subplots()
        for when, marker in (("before", "x"), ("after", ".")):
            axes.plot(*zip(*record["positives"][when], strict=True), marker, alpha=0.5, label=when)
        axes.set(xscale="log", yscale="log", xlabel="rank of the positive", ylabel="its probability")
        axes.legend(frameon=False)
    return [save_figure(figure, folder / f"{name.replace('@', '-')}.svg") for name, figure in figures.items()]


def new_figure() -> Figure:
    """An empty figure of the size that all curves have."""
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 3.6), layout="constrained")
