"""The model card of a trained model: README.md of its folder, with the head that the Hugging Face hub reads.

It names no day and no machine: equal trainings write equal cards.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rnnreranker import __version__
from rnnreranker.base.files import write_atomically
from rnnreranker.base.files.local_names import local_name
from rnnreranker.base.method import find
from rnnreranker.base.pages import row
from rnnreranker.base.written_form import Written
from rnnreranker.data.names import BUILT_IN, BUILT_IN_TOPICS
from rnnreranker.encode.model_folder import known_model
from rnnreranker.train.card_kinds import OURS
from rnnreranker.train.model_files import NOTHING

if TYPE_CHECKING:
    from rnnreranker.train.learner import Learner

CARD = "README.md"
KINDS = ("encoder", "sparse-encoder", "late-encoder", "cross-encoder")  # of models with names
HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
HEAD = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)
FOLDER = "my-model"  # whatever the folder is called
BUILT_IN_NAMES = (*BUILT_IN, *BUILT_IN_TOPICS)


def write_card(
    folder: Path, learner: Learner, record: Mapping[str, Any], params: Any, data_sets: Sequence[str] = ()
) -> None:
    """Write the card into the folder of a model.

    Args:
        folder: that is written.
        learner: which says what the model is; record: of its training, as `training.json` has it.
        params: of the training; data_sets: names of those that were read, ids of ir_datasets or built in.
    """
    kind, start = learner.card, StartOfTraining.of(learner.encoder, learner.folder)
    model = str(record.get("model", "query"))
    head: dict[str, Any] = {"library_name": kind.library}
    if kind.pipeline:
        head["pipeline_tag"] = kind.pipeline
    head |= {key: value for key, value in (("license", start.licence), ("base_model", start.hub)) if value}
    if on_hub := [one for one in data_sets if one not in BUILT_IN_NAMES]:
        head["datasets"] = [f"irds/{one.replace('/', '_')}" for one in on_hub]  # where the hub has ir_datasets' own
    head["tags"] = [*kind.tags, OURS] if kind.library != OURS else [OURS, *kind.tags]
    labels = record.get("labels")
    trained = [
        ("begins as", f"`{start.hub or start.name}`" if start.name else "nothing: a new model"),
        ("licence of that", (start.licence or "not said in its files") if start.name else ""),
        ("labels", _said(labels) if isinstance(labels, Mapping) else ""),
        ("negatives", f"a file, SHA-256 `{record['negatives']}`" if "negatives" in record else ""),
        ("data sets", ", ".join(f"`{one}`" for one in data_sets)),
        ("vectors of documents", f"an index, fingerprint `{record['index']}`" if "index" in record else ""),
        *(
            (key.replace("_", " "), str(record[key]))
            for key in ("training_queries", "validation_queries")
            if key in record
        ),
        ("steps", f"{record['steps']}, of which {record['best_step']} validated best and are kept"),
        ("made by", f"rnnreranker {__version__}"),
    ]
    before, after = record["history"][0], record["measures"]
    lines = [
        f"# {kind.what[:1].upper()}{kind.what[1:]}\n",
        f"Trained with rnnreranker (`--model {model}`){f' from {start.hub or start.name}' if start.name else ''}.\n",
        "## Use\n",
        f"```python\n{kind.opens.format(folder=FOLDER)}\n```\n",
        "## Training\n",
        "| | |\n|---|---|",
        *(row([what, text]) for what, text in trained if text),
        "\nThe command, with names of files as an example:\n",
        f"```\n{_command(model, learner, record, params, start)}\n```\n",
        "## Validation\n",
        "On queries that were not trained on; in parentheses before the first step.\n"
        if "validation_queries" in record
        else "On texts that were not trained on; in parentheses before the first step.\n",
        "| measure | value |\n|---|---|",
        *(row([key, f"{value:.4f} ({before[key]:.4f})"]) for key, value in after.items() if key in before),
        "\nAll settings, and every validation, are in `training.json`.\n",
        "## Share\n",
        f"```python\n{kind.pushes.format(folder=FOLDER)}\n```",
    ]
    text = f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---\n\n" + "\n".join(lines) + "\n"
    with write_atomically(folder / CARD) as stream:
        stream.write(text.encode())


@dataclass(frozen=True)
class StartOfTraining:
    """What a training began with: its name without folders, its id on the hub, its licence; "" = nothing, unknown."""

    name: str
    hub: str
    licence: str

    @classmethod
    def of(cls, encoder: str | None, folder: Path | None) -> StartOfTraining:
        """That of the name that was given, and the folder where its files were; a card of the folder says the rest."""
        name = "" if encoder in (None, NOTHING) else str(encoder)
        known = next((model for kind in KINDS if (model := known_model(name, kind))), None)
        if base := getattr(known, "base", ""):
            return cls(name, *((made := cls.of(base, None)).hub, made.licence))
        said = _head_of(folder / CARD) if folder is not None else {}
        hub = known.hub if known is not None else ""
        if not hub and not Path(name).expanduser().exists() and HUB_ID.fullmatch(name):
            hub = name
        if not hub and isinstance(said.get("base_model"), str):
            hub = said["base_model"]
        licence = said.get("license") or (known.licence if known is not None else "")
        return cls(str(local_name(name)), hub, licence if isinstance(licence, str) else "")


def _head_of(card: Path) -> dict[str, Any]:
    """What the head of a card says; empty of none, and of one that is no YAML."""
    try:
        head = HEAD.match(card.read_text(encoding="utf-8"))
        said = yaml.safe_load(head[1]) if head else {}
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return said if isinstance(said, dict) else {}


def _said(labels: Mapping[str, Any]) -> str:
    """What labels say of how they were made: the method with its settings, and the fingerprint of what it read."""
    of = [f"`{labels['method']}`"] if "method" in labels else []
    settings = labels.get("params")
    if isinstance(settings, Mapping) and settings:
        of.append(f"`{json.dumps(settings, ensure_ascii=False)}`")
    if "queries" in labels:
        of.append(f"{labels['queries']} queries")
    if "input" in labels:
        of.append(f"fingerprint `{labels['input']}`")
    return ", ".join(of)


def _command(model: str, learner: Learner, record: Mapping[str, Any], params: Any, start: StartOfTraining) -> str:
    """The command that trains so, of what this training read."""
    usual = type(params)()
    own = {key: value for key, value in params.to_dict().items() if value != getattr(usual, key)}
    words = ["--model", str(Written(model, {key: value for key, value in own.items() if key != "loss"}))]
    if "loss" in learner.settings and "loss" not in getattr(find("trained-model", model), "without", ()):
        name = learner.settings["loss"]
        defaults = find("loss", name).Params().to_dict()
        said = {key: learner.settings[key] for key, value in defaults.items() if learner.settings[key] != value}
        words += ["--loss", str(Written(name, said))]
    begins = Written(start.hub or start.name, dict(learner.start_settings)) if start.name else NOTHING
    words += ["--encoder", str(begins)]
    if isinstance(record.get("scorer"), Mapping):
        scorer = dict(record["scorer"])
        words += ["--scorer", str(Written(str(scorer.pop("scorer")), scorer))]
    if "negatives" in record:
        words += ["--negatives", "negatives.tsv"]
    elif "labels" in record:
        words += ["--labels", "labels.parquet"]
    if model != "masked":
        words += ["--topics", "topics.tsv"]
    return shlex.join(["python", "-m", "rnnreranker.train", *words, "--index", "my-index", "--output", FOLDER])
