"""A GPU beside sentence-transformers on the same GPU, and beside the processor: wall-clock seconds.

    python benchmarks/gpu.py [--device cuda] [--graphs 100000,1000000] [--steps 100] [--record FILE.json]

Encoders and pairs: the first texts of --documents, encoded once before they are timed; sentence-transformers with the
best of its batch sizes 32, 128 and 512. `base` has random weights and the size of BERT-base; so has the last layer of
pairs. Graphs: 16 exact neighbours of made-up vectors; the first size on the processor, too. Steps: 16 queries each.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from graphs import DIMENSION, K, vectors
from measure import options, report

BATCHES = (32, 128, 512)
MODELS = ("query", "dual", "sparse", "late", "cross", "term-scorer", "masked")


def lasted(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall-clock seconds of a work, and what it returns."""
    begun = time.perf_counter()
    made = work()
    return time.perf_counter() - begun, made


def row(task: str, size: str, ours: float, other: str, theirs: float, check: float | None = None) -> dict[str, Any]:
    """A row; check: the lowest cosine of vectors, the correlation of scores, or the share of equal files."""
    return {
        "task": task,
        "size": size,
        "gpu_s": ours,
        "other": other,
        "other_s": theirs,
        "ratio": ours / theirs if theirs else None,
        "check": check,
    }


def random_model(folder: Path, start: Path, pairs: bool) -> Path:
    """A model with the tokeniser of `start`: of BERT-base's size, or of its own size for pairs."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import AutoConfig, AutoTokenizer, BertConfig, BertForSequenceClassification, BertModel, set_seed

    set_seed(0)
    bare = folder if pairs else folder.with_name(f"{folder.name}-transformer")
    config = AutoConfig.from_pretrained(start, num_labels=1) if pairs else BertConfig()
    (BertForSequenceClassification if pairs else BertModel)(config).save_pretrained(bare)
    AutoTokenizer.from_pretrained(start).save_pretrained(bare)
    if not pairs:
        transformer = Transformer(str(bare), max_seq_length=256)
        SentenceTransformer(modules=[transformer, Pooling(config.hidden_size)]).save(str(folder))
    return folder


def encoded(device: str, texts: list[str], work: Path) -> Iterator[dict[str, Any]]:
    """Rows of vectors and of scores of pairs."""
    import torch
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from rnnreranker.base.device import devices_of
    from rnnreranker.encode.kinds import Encoder, PairScorer
    from rnnreranker.encode.model_folder import find_model

    minilm, size = find_model("minilm").path, f"{len(texts)} texts"
    models = {"minilm": minilm, "base": random_model(work / "base", minilm, pairs=False)}
    for name, dtype in (("minilm", "float32"), ("minilm", "bfloat16"), ("base", "bfloat16")):
        ours = Encoder.load(str(models[name]), devices=devices_of(device, dtype))
        kept = {"torch_dtype": getattr(torch, dtype)}
        theirs = SentenceTransformer(str(models[name]), device=device, model_kwargs=kept)

        def peer(batch: int, theirs: Any = theirs, some: list[str] = texts) -> np.ndarray:
            made = theirs.encode(some, batch_size=batch, normalize_embeddings=True, convert_to_tensor=True)
            return made.float().cpu().numpy()

        ours.encode(texts, what="documents")
        peer(BATCHES[0], some=texts[:512])
        taken, own = lasted(lambda ours=ours: ours.encode(texts, what="documents"))
        times, others = zip(*(lasted(lambda batch=batch: peer(batch)) for batch in BATCHES), strict=True)
        own = own / np.linalg.norm(own, axis=1, keepdims=True)
        lowest = float((own * others[0]).sum(axis=1).min())
        yield row(f"vectors, {name}, {dtype}", size, taken, "sentence-transformers", min(times), lowest)
    folder = random_model(work / "pairs", minilm, pairs=True)
    pairs = [(texts[number // 100][:60], text) for number, text in enumerate(texts)]
    scorer = PairScorer.load(str(folder), devices=devices_of(device))
    other = CrossEncoder(str(folder), device=device, activation_fn=torch.nn.Identity())
    scorer.score(pairs)
    taken, own = lasted(lambda: scorer.score(pairs).scores)
    peers = [lasted(lambda batch=batch: other.predict(pairs, batch_size=batch)) for batch in BATCHES]
    close = float(np.corrcoef(own, peers[0][1])[0, 1])
    yield row("scores of pairs, float32", size, taken, "sentence-transformers", min(one for one, _ in peers), close)


def graphs(device: str, sizes: list[int], work: Path) -> Iterator[dict[str, Any]]:
    """Rows of exact graphs; the check of the first is the share of files that equal those of the processor."""
    from rnnreranker import open_vectors
    from rnnreranker.parts.neighbours.nearest import DenseNeighbours
    from rnnreranker.parts.neighbours.part import write_graph

    for number, size in enumerate([3000, *sizes]):  # the first is not counted: imports, compilation
        np.save(work / "vectors.npy", vectors(size))
        (work / "vectors.ids").write_text("".join(f"d{at}\n" for at in range(size)))
        source = open_vectors(work / "vectors.npy")

        def made(devices: tuple[str, ...], source: Any = source, size: int = size) -> Path:
            output = work / f"{size}-{len(devices)}"
            write_graph(DenseNeighbours(source, devices), output, K)
            return output

        taken, folder = lasted(lambda made=made: made((device,)))
        theirs, equal = 0.0, None
        if number <= 1:
            theirs, other = lasted(lambda made=made: made(()))
            names = sorted(path.name for path in other.iterdir())
            equal = float(np.mean([(folder / name).read_bytes() == (other / name).read_bytes() for name in names]))
        if number:
            yield row(
                "exact graph", f"{size} x {DIMENSION}", taken, f"processor, {os.cpu_count()} cores", theirs, equal
            )


def trained(device: str, documents: str, topics: str, steps: int, work: Path) -> Iterator[dict[str, Any]]:
    """Rows of the seconds of a step of each model; the processor takes a part of the steps."""
    from rnnreranker import build_index, make_labels, search_index, train_model

    index = build_index(documents, work / "index", ["dense", "terms"], "minilm", device)
    run = search_index(index, topics, retrieve="dense", rerank="none", hits=50)
    labels = make_labels(run, topics, index, topics=topics)
    for model in MODELS:
        encoder = "splade-tiny" if model == "sparse" else "minilm"
        alone = model == "masked"
        sources = (None, None, None) if alone else (labels, index, topics)
        more: dict[str, Any] = {"encoder": encoder} | ({"documents": documents} if alone else {})
        settings = "" if alone else ",validation_share=0.05"
        taken = []
        for where, count in ((device, steps), ("cpu", max(2, steps // 25))):
            output = work / f"{model}-{where}"
            kind = f"{model}:max_steps={count},batch_size=16{settings}"
            made = train_model(*sources, kind, output=output, device=where, **more)
            taken.append(made.seconds / count)
        yield row(f"step of {model}", f"{steps} steps", taken[0], f"processor, {os.cpu_count()} cores", taken[1])


def main() -> None:
    """Measure all and print the table."""
    parser = options(__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--graphs", default="100000,1000000", help="documents, comma-separated (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--texts", type=int, help="of the documents (default: all)")
    parser.add_argument("--documents", default="beir/scifact/test")
    parser.add_argument("--topics", default="beir/scifact/train")
    parser.add_argument("--only", choices=("encoded", "graphs", "trained"), nargs="+")
    args = parser.parse_args()
    import torch

    from rnnreranker.data.documents import load_documents

    texts = [document.text for document in load_documents(args.documents)][: args.texts]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        parts = {
            "encoded": lambda: encoded(args.device, texts, work),
            "graphs": lambda: graphs(args.device, [int(size) for size in args.graphs.split(",")], work),
            "trained": lambda: trained(args.device, args.documents, args.topics, args.steps, work),
        }
        card = torch.cuda.get_device_name() if args.device.startswith("cuda") else "processor"
        for part in args.only or parts:
            begun, rows = time.perf_counter(), list[dict[str, Any]]()
            for made in parts[part]():
                rows.append(made)
                print(made, file=sys.stderr, flush=True)
            report(f"gpu, {part}", rows, args.record, begun, device=card)


if __name__ == "__main__":
    main()
