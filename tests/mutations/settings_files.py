"""JSON and YAML: presets, spaces, collections, specs, papers, records, what an index says of itself, journals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from mutations.format import Damage, Format
from mutations.texts import text_of
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.files.yaml_files import read_yaml
from rnnreranker.base.record import read_records
from rnnreranker.index.opening import open_index
from rnnreranker.lab.study.trial import read_trial
from rnnreranker.lab.tune.leave_out import read_collections
from rnnreranker.lab.tune.space import Space
from rnnreranker.regress.papers.paper import read_paper
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.rnn.params import RnnParams
from rnnreranker.train.query.params import TrainParams

ROOT = Path(__file__).resolve().parents[2]
JSON = '{"a": [1, 2.5, null], "b": {"c": "d"}, "é": true}'
YAML = "a: 1\nb: [x, 2.5, true]\nc: {d: 'e', f: null}\ng: |\n  two\n  lines\nh: \"q\\u00e9\"\n"
PRESET = "k: 12\nk_exp: 4\ntau: 0.5\nlam: 0.25\nweight: linear\nscale: minmax\n"
TRAINING = "train: {epochs: 3, batch_size: 8, learning_rate: 1.0e-4, loss: kl}\n"
SPACE = "k: {low: 3, high: 30}\nlam: {low: 0.001, high: 1, log: true}\nscale: [minmax, none]\n"
COLLECTIONS = "one: {index: a, topics: b, qrels: c}\ntwo: {index: a, topics: b, qrels: c, collection: x}\n"
TRIAL = {"arm": "x", "task": "t", "seed": 1, "values": {"nDCG@10": {"q1": 0.5, "q2": 0.25}}, "seconds": 1.5}
INDEX = {
    "schema": 2,
    "count": 4,
    "inputs": {"documents": "x"},
    "parts": {"dense": {"dimension": 3, "dtype": "float32", "encoder": {"name": "m", "settings": {"pooling": "mean"}}}},
    "versions": {"numpy": "2"},
}


def slow_yaml(path: Path) -> Any:
    import yaml

    return yaml.safe_load(text_of(path))


def slow_json(path: Path) -> Any:
    return json.loads(text_of(path), object_pairs_hook=_each_once)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def _slow_preset(path: Path) -> Any:
    """The default's values with those of the file in their places, numbers where numbers belong."""
    found = slow_yaml(path)
    default = RnnParams().to_dict()
    assert set(found) <= {*default, "schema"}
    values = {**default, **{key: value for key, value in found.items() if key != "schema"}}
    return {key: float(value) if isinstance(default[key], float) else value for key, value in values.items()}


def _slow_training(path: Path) -> Any:
    found = slow_yaml(path)
    default = TrainParams().to_dict()
    values = (found.get("train") or {}) if set(found) & {"train", "labels", "rnn", "rerank", "loss"} else found
    assert set(values) - {"schema"} <= set(default)
    epochs = float(values.get("epochs", default["epochs"]))
    return {"epochs": epochs, **{key: values.get(key, default[key]) for key in ("batch_size", "loss")}}


def _read_training(path: Path) -> Any:
    found = TrainParams.from_yaml(path).to_dict()
    return {key: found[key] for key in ("epochs", "batch_size", "loss")}


def _read_space(path: Path) -> Any:
    ranges = Space.from_yaml(path).ranges
    return {
        name: [float(one.low), float(one.high), one.log]
        if hasattr(one, "low")
        else ["none" if v is None else v for v in one]
        for name, one in ranges.items()
    }


def _slow_space(path: Path) -> Any:
    found = {}
    for name, entry in slow_yaml(path).items():
        if isinstance(entry, list):
            found[name] = entry
        else:
            found[name] = [float(entry["low"]), float(entry["high"]), bool(entry.get("log", False))]
    return found


def _read_index(path: Path) -> Any:
    index = open_index(str(path.parent))
    return [index.parts, index.settings.get("parts", {}), index.encoder]


def _slow_index(path: Path) -> Any:
    described = slow_json(path)
    parts = described.get("parts")
    if parts is None:
        dense = {key: described[key] for key in ("dimension", "dtype", "encoder") if key in described}
        parts = {**({"dense": dense} if dense else {}), **({"bm25": {}} if described.get("bm25") else {})}
    return [("dense",), parts, parts.get("dense", {}).get("encoder", {})]


def _make_index(path: Path) -> None:
    import numpy as np

    path.write_text(json.dumps(INDEX))
    np.save(path.with_name("vectors.npy"), np.eye(3, dtype=np.float32))
    path.with_name("docid").write_text("a\nb\nc\n")


def _copied(source: str) -> Callable[[Path], None]:
    return lambda path: path.write_bytes((ROOT / source).read_bytes())


def _make_record(path: Path) -> None:
    content = json.loads((ROOT / "regressions/results/scifact.json").read_text())
    path.write_text(json.dumps({"schema": content["schema"], "records": content["records"][:2]}, indent=1))


def _read_records(path: Path) -> Any:
    return [[one.kind, one.spec, one.name, one.outcome, one.inputs, one.seconds] for one in read_records(path)]


def _slow_records(path: Path) -> Any:
    return [
        [one["kind"], one["spec"], one["name"], one["outcome"], one.get("inputs", {}), one.get("seconds", 0.0)]
        for one in slow_json(path).get("records", [])
    ]


def _make_spec(path: Path) -> None:
    shutil.copytree(ROOT / "regressions" / "parts", path.parent / "parts")
    _copied("regressions/scifact.yaml")(path)


def _read_spec(path: Path) -> Any:
    spec = read_spec(path)
    return [spec.name, spec.title, spec.about, list(spec.measures), spec.hits, spec.notes]


def _slow_spec(path: Path) -> Any:
    found = slow_yaml(path)
    return [
        found["name"], found["title"], found["about"], found.get("measures", []), found.get("hits", 1000),
        found.get("notes", ""),
    ]  # fmt: skip


def _make_paper(path: Path) -> None:
    path.parent.mkdir()
    _copied("regressions/papers/paper-004.yaml")(path)


def _slow_paper(path: Path) -> Any:
    found = slow_yaml(path)
    return [found["title"], [table["table"] for table in found["tables"]]]


def _read_paper(path: Path) -> Any:
    paper = read_paper(path.stem, path.parent.parent)
    return [paper.title, [table.table for table in paper.tables]]


def _make_journal(path: Path) -> None:
    _searched(path, 3)


def _searched(path: Path, trials: int) -> Any:
    from rnnreranker.lab.tune.trials import search

    space: Space[RnnParams] = Space({"k": (5, 10, 20)})
    found = search(lambda params, report: float(params.k), space, trials, storage=path, about={"x": "y"})
    return [found.value, found.trials]


def _slow_journal(path: Path) -> Any:
    """The log by hand: studies and trials by their numbers in it, values of the first three that ended."""
    studies: list[str] = []
    trials: list[dict[str, Any]] = []
    for line in map(json.loads, path.read_bytes().split(b"\n")[:-1]):
        if line["op_code"] == 0 and line["study_name"] not in studies:
            studies.append(line["study_name"])
        elif line["op_code"] == 4:
            trials.append({"study": line["study_id"], "state": 0, "values": None})
        elif line["op_code"] == 6 and trials[line["trial_id"]]["state"] not in (1, 2, 3):
            trials[line["trial_id"]] |= {"state": line["state"], "values": line["values"]}
    ended = [one for one in trials if studies[one["study"]] == "tune" and one["state"] in (1, 2)][:3]
    return [max(float(one["values"][0]) for one in ended if one["state"] == 1), len(ended)]


def own_of_yaml(rng: Random, path: Path) -> None:
    """What readers of YAML differ on, put in where a value or a key stands."""
    lines = path.read_text().split("\n")
    at = rng.randrange(len(lines))
    piece = rng.choice(
        ["\t", "! ", "!!str ", "!x ", "&a ", "*a", "? ", "- ", "%YAML 1.1\n", "---\n", "...\n", "\u2028"]
    )
    place = rng.randint(0, len(lines[at]))
    lines[at] = lines[at][:place] + piece + lines[at][place:]
    path.write_text("\n".join(lines))


def _of(
    title: str, name: str, make: Callable[[Path], Any], read: Callable[[Path], Any], slow: Callable[[Path], Any],
    weight: float = 1.0, longest: int = 2000,
) -> Format:  # fmt: skip
    own: tuple[Damage, ...] = (own_of_yaml,) if name.endswith(".yaml") else ()
    return Format(
        title, lambda folder: make(folder / name), (name,), lambda folder: read(folder / name),
        lambda folder: slow(folder / name), weight, own, longest=longest,
    )  # fmt: skip


def _written(text: str) -> Callable[[Path], Any]:
    return lambda path: path.write_text(text)


FORMATS = [
    _of("JSON", "any.json", _written(JSON), read_json, slow_json),
    _of("YAML", "any.yaml", _written(YAML), read_yaml, slow_yaml, 2.0),
    _of("preset", "preset.yaml", _written(PRESET), lambda path: RnnParams.from_yaml(path).to_dict(), _slow_preset),
    _of("preset, with sections", "train.yaml", _written(TRAINING), _read_training, _slow_training, 0.7),
    _of("search space", "space.yaml", _written(SPACE), _read_space, _slow_space),
    _of("collections", "leave.yaml", _written(COLLECTIONS), read_collections, slow_yaml, 0.7),
    _of("spec", "scifact.yaml", _make_spec, _read_spec, _slow_spec, 0.5, 50_000),
    _of("published tables", "papers/paper-004.yaml", _make_paper, _read_paper, _slow_paper, 0.5, 50_000),
    _of("records", "records.json", _make_record, _read_records, _slow_records, 0.7),
    _of("rnnreranker.json", "rnnreranker.json", _make_index, _read_index, _slow_index),
    _of("record of a trial", "trial.json", _written(json.dumps(TRIAL)), read_trial, slow_json, 0.7),
    _of("journal of trials", "journal.log", _make_journal, lambda path: _searched(path, 3), _slow_journal, 0.5),
]
