"""Curves of trainings: loss and measure by step, the positives' probability by rank; SVG files."""

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


def write_plots(folder: str | os.PathLike[str], records: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """Draw trainings beside each other; the files written.

    Args:
        folder: made where it is not there.
        records: by the name of the training, what its `training.json` holds (000 Figures 2, 10, 11).

    Raises:
        MissingDependencyError: without matplotlib.
        InputError: no training, or a folder that cannot be written.
    """
    require("matplotlib", "plots", "'rnnreranker[plots]'")
    if not records:
        raise InputError("no training to draw; expected at least one record")
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error})") from None
    written = []
    for name, label in CURVES.items():
        figure = new_figure()
        axes = figure.subplots()
        for training, record in records.items():
            steps = [entry["step"] for entry in record["history"]]
            axes.plot(steps, [entry[name] for entry in record["history"]], marker=".", label=training)
        axes.set(xlabel="step", ylabel=label)
        axes.legend(frameon=False)
        written.append(save_figure(figure, folder / f"{name.replace('@', '-')}.svg"))
    figure = new_figure()
    axes = figure.subplots()
    for training, record in records.items():
        for when, marker in (("before", "x"), ("after", ".")):
            pairs = record["positives"][when]
            ranks, shares = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            axes.plot(ranks, shares, marker, alpha=0.5, label=f"{training}, {when}")
    axes.set(xscale="log", yscale="log", xlabel="rank of the positive", ylabel="its probability")
    axes.legend(frameon=False)
    written.append(save_figure(figure, folder / "positives.svg"))
    return written


def new_figure() -> Figure:
    """An empty figure of the size that all curves have."""
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 3.6), layout="constrained")
