"""Models: an encoder's folder, a scorer's, and a checkpoint of a training; tiny ones of two layers."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from mutations.format import Format

WORDS = "w1 w2 w39 w7"
SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size", "layer_norm_eps")
POOLING = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}


def slow_safetensors(path: Path) -> dict[str, Any]:
    """Names and float32 values of a file: a JSON header behind its length, then the numbers without gaps."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    header.pop("__metadata__", None)
    found, kinds = {}, {"F32": np.float32, "F16": np.float16, "I64": np.int64, "F64": np.float64, "BOOL": np.bool_}
    for name, about in header.items():
        start, end = about["data_offsets"]
        kind = kinds[about["dtype"]]
        found[name] = np.frombuffer(data[start:end], kind).reshape(about["shape"]).astype(np.float64)
    return found


def bad_tensors(rng: Random, path: Path) -> None:
    """Another header on the same numbers, or other numbers."""
    content = path.read_bytes()
    if path.suffix != ".safetensors":
        return
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    name = rng.choice([one for one in header if one != "__metadata__"])
    kind = rng.choice(["rename", "dtype", "shape", "offsets", "drop", "again", "number", "length"])
    data = bytearray(content[8 + length :])
    if kind == "rename":
        header[rng.choice([f"{name}x", name.upper(), "", f"x.{name}"])] = header.pop(name)
    elif kind == "dtype":
        header[name]["dtype"] = rng.choice(["F16", "I32", "BF16", "F64", "X", None, "U8", "F8_E4M3"])
    elif kind == "shape":
        shape = header[name]["shape"]
        header[name]["shape"] = rng.choice([shape[::-1], [*shape, 1], [], [-1], [2**62], [0], shape * 2, ["3"], None])
    elif kind == "offsets":
        start, end = header[name]["data_offsets"]
        header[name]["data_offsets"] = rng.choice(
            [[end, start], [start + 4, end + 4], [0, end], [start, 2**60], [start]]
        )
    elif kind == "drop":
        del header[name]
    elif kind == "again":
        header[f"{name}.again"] = header[name]
    elif kind == "number":
        place = rng.randrange(len(data) // 4) * 4
        odd = [float("nan"), float("inf"), 3e38, 1e30, 0.0, -1e-40]
        data[place : place + 4] = struct.pack("<f", rng.choice(odd))
    text = json.dumps(header).encode()
    size = rng.choice([2**63, 2**40, 0, len(text) + 1]) if kind == "length" else len(text)
    path.write_bytes(size.to_bytes(8, "little") + text + bytes(data))


def _tiny(folder: Path) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tiny_encoder import make_encoder
    from transformers.utils import logging

    logging.disable_progress_bar()
    make_encoder(folder)


def _make_encoder(folder: Path) -> None:
    _tiny(folder)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": place, "name": str(place), "path": where, "type": f"sentence_transformers.models.{kind}"}
        for place, (where, kind) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(POOLING))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 32, "do_lower_case": false}')
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "w3 "}}')


def _read_encoder(folder: Path) -> Any:
    from rnnreranker.encode.dense.encoder import Encoder

    encoder = Encoder.load(str(folder), dtype="float32")
    vectors = encoder.encode([WORDS], threads=1)
    model = encoder.model
    if not hasattr(model, "tokenizer"):  # run by sentence-transformers, by modules of its own
        return ["other modules", bool(np.isfinite(vectors).all())]
    return [
        _sizes(model.transformer.config),
        _weights(model.transformer),
        _vocabulary(model.tokenizer),
        encoder.settings["pooling"],
    ]


def _sizes(config: Any) -> dict[str, Any]:
    return {name: float(getattr(config, name)) for name in SIZES}


def _weights(model: Any) -> dict[str, Any]:
    state = {name: value.double().numpy() for name, value in model.state_dict().items()}
    return {name: state[name] for name in sorted(state) if "pooler" not in name and "position_ids" not in name}


def _vocabulary(tokenizer: Any) -> list[tuple[str, int]]:
    return sorted(tokenizer.get_vocab().items(), key=lambda one: (one[1], one[0]))


def _slow_encoder(folder: Path) -> Any:
    modules = json.loads((folder / "modules.json").read_text())
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    modes = [name for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True]
    named = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max"}
    if kinds not in (["Transformer", "Pooling", "Normalize"], ["Transformer", "Pooling"]) or len(modes) != 1:
        return ["other modules", True]
    return [*_slow_transformer(folder), named[modes[0]]]


def _slow_transformer(folder: Path) -> list[Any]:
    config = json.loads((folder / "config.json").read_text())
    standard = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    standard |= {"vocab_size": 30522, "layer_norm_eps": 1e-12}
    weights = slow_safetensors(folder / "model.safetensors")
    kept = {name: weights[name] for name in sorted(weights) if "pooler" not in name}
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = dict(tokenizer["model"]["vocab"])
    vocabulary |= {one["content"]: one["id"] for one in tokenizer.get("added_tokens") or []}
    ordered = sorted(vocabulary.items(), key=lambda one: (one[1], one[0]))
    return [{name: float(config.get(name, standard[name])) for name in SIZES}, kept, ordered]


def _make_graph(folder: Path) -> None:
    """What the cache folder has of an encoder: its graph, weights and tokenizer, and a description of them."""
    from rnnreranker.encode.dense.encoder import Encoder

    plain, home = folder.with_name("plain"), folder.with_name("home")
    plain.mkdir()
    _tiny(plain)
    before = os.environ.get("RNNRERANKER_HOME")
    os.environ["RNNRERANKER_HOME"] = str(home)
    try:
        graph = Encoder.open(str(plain), pooling="mean", dtype="float32").graph
    finally:
        del os.environ["RNNRERANKER_HOME"]
        if before is not None:
            os.environ["RNNRERANKER_HOME"] = before
    assert graph is not None
    folder.rmdir()
    graph.folder.rename(folder)


def _read_graph(folder: Path) -> Any:
    """Its numbers, as those who use a graph read it."""
    from rnnreranker.encode.dense.graph import GraphModel, check_about
    from rnnreranker.encode.graphs.store import DESCRIPTION, graph_in

    graph = graph_in(folder, DESCRIPTION, "it is made again")
    about = check_about(graph)
    model = GraphModel(graph, {"lowercase": about["lowercase"], "max_length": min(max(about["limit"], 4), 64)})
    vectors = np.stack([model.forward([tokens])[0] for tokens in model.tokenize([WORDS, "w1"])])
    return [{name: about[name] for name in sorted(about)}, np.round(vectors.astype(np.float64), 2)]


def _slow_graph(folder: Path) -> Any:
    """What a description says, of files that have its digests; the vectors are those of the whole files."""
    about = json.loads((folder / "graph.json").read_text())
    for name in ("model.onnx", "model.onnx.data", "tokenizer.json"):
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == about["sha256"][name]
    import onnxruntime
    import tokenizers

    words = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    texts = [text.lower() if about["lowercase"] else text for text in (WORDS, "w1")]
    limit = min(max(about["limit"], 4), 64)
    found = []
    for text in texts:
        numbers = words.encode(text).ids
        numbers = np.array([numbers if len(numbers) <= limit else [*numbers[: limit - 1], numbers[-1]]], dtype=np.int64)
        found.append(session.run(None, {"tokens": numbers, "attention": np.ones_like(numbers)})[0][0])
    return [{name: about[name] for name in sorted(about)}, np.round(np.stack(found).astype(np.float64), 2)]


def _make_scorer(folder: Path) -> None:
    import torch

    from rnnreranker.encode.dense.query_encoder import load_query_encoder
    from rnnreranker.encode.scorer.folder import write_scorer
    from rnnreranker.encode.scorer.model import CandidateScorer
    from rnnreranker.encode.scorer.params import ScorerParams

    plain = folder.with_name("plain")
    plain.mkdir()
    _tiny(plain)
    encoder, tokens, _ = load_query_encoder(str(plain), 32, pooling="mean")
    torch.manual_seed(0)
    folder.rmdir()
    write_scorer(folder, CandidateScorer(encoder, 32, ScorerParams()), tokens, 32)


def _read_scorer(folder: Path) -> Any:
    from rnnreranker.encode.scorer.folder import TrainedScorer

    scorer = TrainedScorer(folder)
    scorer.score(scorer.encode(WORDS), np.ones((2, scorer.dimension), dtype=np.float32))
    state = {name: value.double().numpy() for name, value in scorer.model.state_dict().items()}
    own = {name: state[name] for name in sorted(state) if not name.startswith("encoder.transformer.")}
    return [scorer.dimension, own, _weights(scorer.model.encoder.transformer)]


def _slow_scorer(folder: Path) -> Any:
    own = slow_safetensors(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    weights = _slow_transformer(folder / "encoder")[1]
    return [int(config["dimension"]), {name: own[name] for name in sorted(own)}, weights]


def _make_checkpoint(folder: Path) -> None:
    import torch
    from safetensors.torch import save_file

    from rnnreranker.train.checkpoints import resume_from, write_mark

    assert resume_from(folder / "training", "this") is None
    place = folder / "training" / "checkpoint-4"
    place.mkdir()
    save_file({"a": torch.arange(6.0)}, str(place / "best.safetensors"))
    torch.save({"step": 4, "state": torch.arange(3.0)}, place / "optimizer.pt")
    (place / "trainer_state.json").write_text('{"global_step": 4}')
    write_mark(place, {"value": 0.5, "step": 4, "stale": 0, "ended": False})


def _read_checkpoint(folder: Path) -> Any:
    from rnnreranker.train.best import Best
    from rnnreranker.train.checkpoints import resume_from

    found = resume_from(folder / "training", "this")
    trainer = SimpleNamespace(params=SimpleNamespace(key_measure="MRR"), learner=SimpleNamespace(kept=None))
    best = Best(trainer)  # type: ignore[arg-type]
    best.load(found)  # type: ignore[arg-type]
    return [best.value, best.step, best.stale, best.ended, best.weights["a"].tolist()]


def _slow_checkpoint(folder: Path) -> Any:
    """Its digests say that it is what was written, or else it is refused."""
    return [0.5, 4, 0, False, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]


def _without(module: str) -> Callable[[], str]:
    def needs() -> str:
        from importlib.util import find_spec

        return "" if find_spec(module) else f"{module} is not installed"

    return needs


FORMATS = [
    Format(
        "encoder, folder", _make_encoder,
        ("config.json", "model.safetensors", "model.safetensors", "tokenizer.json", "modules.json",
         "1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
        _read_encoder, _slow_encoder, 0.4, (bad_tensors,), quick=2, needs=_without("transformers"),
    ),
    Format(
        "graph of an encoder", _make_graph,
        ("graph.json", "graph.json", "model.onnx", "model.onnx.data", "tokenizer.json"), _read_graph, _slow_graph,
        0.7, quick=4, needs=_without("onnx"),
    ),
    Format(
        "scorer, folder", _make_scorer, ("config.json", "model.safetensors", "encoder/config.json",
        "encoder/model.safetensors"), _read_scorer, _slow_scorer, 0.3, (bad_tensors,), quick=2,
        needs=_without("transformers"),
    ),
    Format(
        "checkpoint of a training", _make_checkpoint,
        tuple(f"training/{name}" for name in (
            "work.json", "checkpoint-4/best.json", "checkpoint-4/best.safetensors", "checkpoint-4/optimizer.pt",
            "checkpoint-4/trainer_state.json",
        )), _read_checkpoint, _slow_checkpoint, 0.5, (bad_tensors,), quick=5, needs=_without("accelerate"),
    ),
]  # fmt: skip
