"""The result of tuning as a file for `--preset`, with what it is worth in its head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from rnnreranker.base.files import write_atomically
from rnnreranker.base.tables import interval
from rnnreranker.lab.tune.heldout import HeldOut
from rnnreranker.lab.tune.trials import Study


def write_preset(
    path: str | Path, settings: dict[str, Any], study: Study[Any], held_out: HeldOut, about: dict[str, Any]
) -> None:
    """Write the settings that a study found as YAML that `--preset FILE` reads.

    What it is worth, and `about`, name -> value, go into the comment at the head.

    Raises:
        InputError: the file cannot be written.
    """
    head = [f"{name}: {value}" for name, value in about.items()]
    head += [
        f"trials: {study.trials}, {study.pruned} of them ended early",
        f"on the topics searched: {study.value:.4f} (best of the trials, so too good)",
        f"held out ({held_out.how}, {held_out.topics} topics): tuned {held_out.tuned:.4f}, "
        f"default {held_out.default:.4f}, as retrieved {held_out.base:.4f}",
        f"tuned minus default: {interval(held_out.gain, held_out.low, held_out.high)}, p = {held_out.p:.3f}",
    ]
    comment = "".join(f"# {' '.join(str(line).split())}\n" for line in ["Tuned by rnnreranker.", *head])
    body = yaml.safe_dump(settings, sort_keys=False)
    with write_atomically(path) as stream:
        stream.write((comment + body).encode())
