"""What is frozen: every value by the public functions and commands, from a world that these tests make.

`python tests/frozen/making.py [GROUP …]` writes the values anew, into tests/frozen/values/.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
VALUES = HERE / "values"
DEPTH = 5  # entries of a query on file
RUNS: dict[str, dict[str, Any]] = {  # name → arguments of Index.search
    "bm25": {"retrieve": "bm25"},
    "bm25-parameters": {"retrieve": "bm25:k1=0.9,b=0.4"},
    "bm25s": {"retrieve": "bm25s"},
    "tf-idf": {"retrieve": "tf-idf"},
    "dense": {"retrieve": "dense"},
    "impact": {"retrieve": "impact"},
    "late": {"retrieve": "late"},
    "rrf": {"retrieve": "bm25+dense"},
    "minmax": {"retrieve": "bm25+dense", "fuse": "minmax"},
    "zscore": {"retrieve": "bm25+impact+dense", "fuse": "zscore"},
    "mean-zero": {"retrieve": "bm25+dense", "fuse": "mean-zero"},
    "weighted": {"retrieve": "bm25+dense", "fuse": 'minmax:weights="0.3,0.7"'},
    "rm3": {"retrieve": "bm25", "prf": "rm3:fb_docs=3,fb_terms=8"},
    "rocchio": {"retrieve": "dense", "prf": "rocchio:fb_docs=5"},
    "average": {"retrieve": "dense", "prf": "average:fb_docs=3"},
    "average-impact": {"retrieve": "impact", "prf": "average:fb_docs=3"},
    "colbert-prf": {"retrieve": "late", "prf": "colbert:fb_docs=2,fb_clusters=6,fb_embeddings=4"},
    "expand": {"retrieve": "bm25", "expand": "neighbours", "hits": 60},
    "gar": {"retrieve": "bm25", "expand": "gar", "hits": 60},
    "ladr": {"retrieve": "bm25", "expand": "ladr", "hits": 60},
    "expand-rnn": {"retrieve": "bm25", "expand": "neighbours", "rerank": "rnn", "hits": 60},
}
RERANKED: dict[str, tuple[str, Any]] = {  # name → first stage, rerankers in their written form
    "rnn-dense": ("dense", "rnn"),
    "rnn-bm25": ("bm25", "rnn"),
    "rnn-minmax": ("minmax", "rnn"),
    "rnn-mixture": ("dense", "rnn:preset=mixture"),
    "rnn-vectors": ("dense", "rnn:preset=vectors"),
    "rnn-tas-b": ("dense", "rnn:preset=tas-b"),
    "rnn-cocondenser": ("bm25", "rnn:preset=coder-cocondenser"),
    "rnn-exp": ("dense", "rnn:weight=exp,k=15,tau=0.25,normalize=max"),
    "rnn-paper": ("dense", "rnn:variant=paper,scale=none,k=12,rank_weight=0,run_weight=0,probes=1,smoothing=0"),
    "rnn-probes": ("bm25", "rnn:probes=4,context=80,smoothing=0.4"),
    "rnn-graph": ("bm25", "rnn:from=neighbours"),
    "rnn-tokens": ("late", "rnn:from=tokens"),
    "jaccard-plain": ("dense", "jaccard-plain"),
    "encoder": ("bm25", "encoder"),
    "late-rerank": ("bm25", "late:context=50"),
    "lexboost": ("bm25", "lexboost"),
    "mmr": ("dense", "mmr:lam=0.7"),
    "prf-rocchio": ("dense", "prf:feedback=rocchio,fb_docs=5"),
    "regularise": ("bm25", "regularise"),
    "zhong": ("dense", "zhong"),
    "chain": ("minmax", ["rnn", "mmr:lam=0.7"]),
}
PASSAGES: dict[str, dict[str, Any]] = {
    "maxp-dense": {"retrieve": "dense", "aggregate": "maxp"},
    "maxp-bm25-rnn": {"retrieve": "bm25", "rerank": "rnn", "aggregate": "maxp"},
    "sump": {"retrieve": "bm25", "aggregate": "sump"},
}
LABELS: dict[str, dict[str, Any]] = {
    "evidence": {},
    "evidence-coder": {"preset": "coder-tas-b", "n_max": 10, "normalization": "std"},
    "evidence-fully": {"redistribute": "fully", "rho": 0.3, "aggregate": "max", "include_level": 0.2},
    "geometric": {},
    "jaccard": {},
    "uniform": {},
    "query": {},
    "hard": {},
    "run": {},
    "joint": {},
    "joint-share": {"mass": "share"},
    "collective": {},
    "term-weight": {},
    "teacher": {"teacher": "late"},
}
GRAPH_LABELS = ("evidence", "joint")  # with similarities from the graph of neighbours
TRAININGS: dict[str, list[str]] = {  # two short ones of each kind, from models of two layers
    "query": ["query:loss=kl", "query:loss=margin"],
    "dual": ["dual:loss=distance", "dual:loss=info-nce"],
    "sparse": ["sparse:loss=info-nce", "sparse:loss=info-nce,lambda_q=0.01"],
    "late": ["late:loss=info-nce,dimension=16", "late:loss=kl,dimension=16"],
    "cross": ["cross:loss=lce", "cross:loss=bce"],
    "masked": ["masked", "masked:learning_rate=1e-3"],
    "term-scorer": ["term-scorer", "term-scorer:learning_rate=1e-3"],
}
MEASURES = "nDCG@10 RR@10 AP R@100 P@5 Judged@10 nDCG Success@5"


class World:
    """The collections, their indexes and what has been made of them so far."""

    def __init__(self, folder: Path, indexes: Path | None = None) -> None:
        sys.path.insert(0, str(HERE))
        import world

        self.folder, self.indexes = folder, indexes or folder  # of two workers one makes the indexes
        world.write(folder)
        self._runs: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        from rnnreranker import build_index, open_index

        if name == "index":
            parts = ["dense", "bm25", "impact", "tokens", "terms", "neighbours"]
            build_index(self.path("documents.jsonl"), self.indexes / "index", parts=parts)
            made = open_index(str(self.indexes / "index"))
        elif name == "passages":
            build_index(self.path("passages.jsonl"), self.indexes / "passages", parts=("dense", "bm25"))
            made = open_index(str(self.indexes / "passages"))
        else:
            raise AttributeError(name)
        setattr(self, name, made)
        return made

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def run(self, name: str) -> Any:
        """A run of RUNS, RERANKED or PASSAGES."""
        if name not in self._runs:
            topics = self.path("topics.tsv")
            if name in RUNS:
                made = self.index.search(topics, **{"rerank": None, "hits": 100} | RUNS[name])
            elif name in RERANKED:
                first, forms = RERANKED[name]
                made = self.index.rerank(self.run(first), forms, topics=topics)
            else:
                made = self.passages.search(topics, **{"rerank": None, "hits": 40} | PASSAGES[name])
            self._runs[name] = made
        return self._runs[name]

    def written(self, name: str) -> str:
        """The file of a run."""
        path = self.folder / f"{name}.run"
        if not path.exists():
            self.run(name).write(path, tag="frozen")
        return str(path)

    def command(self, name: str, *arguments: str) -> str:
        """What a command prints on stdout, called in this process: several share what they import."""
        module = importlib.import_module(f"rnnreranker.{name}")
        module = module if hasattr(module, "main") else importlib.import_module(f"rnnreranker.{name}.__main__")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert module.main(arguments) == 0, f"{name} {' '.join(arguments)}"
        return printed.getvalue()


def digest(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:20]


def runs(world: World) -> dict[str, Any]:
    """Of every run: what `run_values` says."""
    return {name: run_values(world, name) for name in (*RUNS, *RERANKED, *PASSAGES)}


def run_values(world: World, name: str) -> dict[str, Any]:
    """The digest of a run's file, the number of its entries, and the first DEPTH of every query."""
    run, entries = world.run(name), {}
    for qid, first, last in zip(run.qids, run.offsets[:-1], run.offsets[1:], strict=True):
        last = min(last, first + DEPTH)
        docids, scores = run.docids[run.rows[first:last]].tolist(), run.scores[first:last].tolist()
        entries[str(qid)] = " ".join(f"{d}={s:.8g}" for d, s in zip(docids, scores, strict=True))
    return {"digest": digest(world.written(name)), "entries": len(run.rows), "head": entries}


def labels(world: World) -> dict[str, Any]:
    """Of every method: targets of the candidates that have any, and the number of candidates."""
    from rnnreranker import make_labels

    values: dict[str, Any] = {}
    jobs = LABELS | {f"{name}-graph": LABELS[name] | {"from": "neighbours"} for name in GRAPH_LABELS}
    for name, given in jobs.items():
        method = next(one for one in sorted(LABELS, key=len) if name == one or name.startswith(f"{one}-"))
        form = {method: given} if given else method
        path = world.path(f"{name}.parquet")
        made = make_labels(
            world.run("dense"), world.path("qrels.txt"), world.index, form,
            topics=world.path("topics.tsv"), depth=40, output=path,
        )  # fmt: skip
        values[name] = targets_of(path) | {"queries": len(made)}
    return values


def targets_of(path: str) -> dict[str, Any]:
    import pandas

    table = pandas.read_parquet(path)
    queries = {}
    for row in table.itertuples():
        order = np.argsort(-np.asarray(row.targets), kind="stable")[:6]
        queries[str(row.qid)] = " ".join(f"{row.docids[i]}={row.targets[i]:.7g}" for i in order)
    return {"targets": queries, "candidates": int(sum(len(docids) for docids in table["docids"]))}


def encoders(world: World) -> tuple[Path, Path]:
    """The tiny encoder and the tiny masked language model of trainings and studies."""
    sys.path.insert(0, str(HERE.parent))
    from tiny_encoder import make_encoder, make_masked

    tiny, masked = world.folder / "tiny", world.folder / "tiny-masked"
    if not tiny.is_dir():
        words = sorted({word for text in _texts() for word in text.replace(".", " ").split()})
        make_masked(masked, words)
        make_encoder(tiny, words)
    return tiny, masked


def trainings(world: World) -> dict[str, Any]:
    """Of every training: the digest of its weights, and its validation values."""
    from rnnreranker import make_labels, train_model

    tiny, masked = encoders(world)
    start: dict[str, Path | None] = dict.fromkeys(("dual", "late", "cross", "term-scorer"), tiny)
    start |= {"query": None, "sparse": masked, "masked": masked}
    path = world.path("training.parquet")
    made = make_labels(
        world.run("bm25"), world.path("qrels.txt"), world.index, "evidence", topics=world.path("topics.tsv"), depth=20,
        output=path,
    )  # fmt: skip
    values = {}
    for kind, forms in TRAININGS.items():
        for number, form in enumerate(forms):
            more = ",".join([form.partition(":")[2]] * (":" in form) + ["max_steps=4", "batch_size=4"])
            reads = kind != "masked"
            output = world.folder / f"trained-{kind}-{number}"
            trained = train_model(
                path if reads else None, world.index, world.path("topics.tsv") if reads else None, f"{kind}:{more}",
                output=output, encoder=start[kind] and str(start[kind]),
            )  # fmt: skip
            weights = sorted(output.rglob("*.safetensors"))
            values[f"{kind}-{number}"] = {
                "weights": [digest(one) for one in weights],
                "validation": {key: float(value) for key, value in trained.measures.items()},
            }
    assert made is not None
    return values


def _texts() -> list[str]:
    import world

    return [*world.documents().values(), *world.topics().values()]


def measures(world: World) -> dict[str, Any]:
    """Means of measures over four runs, under every protocol."""
    from rnnreranker import evaluate_run

    names = ("bm25", "dense", "rnn-dense", "maxp-dense")
    given = {name: world.run(name) for name in names}
    values = {}
    for protocol in ("trec", "dl", "strict", "binary"):
        table = evaluate_run(given, world.path("qrels.txt"), measures=MEASURES, protocol=protocol)
        values[protocol] = json.loads(table.to_json(orient="index", double_precision=10))
    return values


def fusions(world: World) -> dict[str, Any]:
    """Digests of runs that the command `fuse` writes."""
    values = {}
    for method in ("rrf", "rrf:k=10", "minmax", "zscore", "mean", "mean-zero", 'minmax:weights="0.3,0.7"'):
        output = world.path("fused.run")
        world.command("fuse", world.written("bm25"), world.written("dense"), "--method", method, "--output", output)
        values[method] = digest(output)
    return values


def laboratory(world: World) -> dict[str, Any]:
    """Values of a tuning, of studies of each family, of a recovery and of a diagnosis."""
    assert world.index is not None
    index, topics, qrels = str(world.indexes / "index"), world.path("topics.tsv"), world.path("qrels.txt")
    asked = ("--index", index, "--topics", topics, "--qrels", qrels)
    values: dict[str, Any] = {}
    world.command("tune", *asked, "--run", world.written("bm25"), "--trials", "12", "--folds", "2",
                  "--record", world.path("tuning.json"), "--output", world.path("tuned.yaml"))  # fmt: skip
    lines = (world.folder / "tuned.yaml").read_text().splitlines()
    values["tune"] = [line for line in lines if str(world.folder) not in line and str(index) not in line]
    shown = world.command("recover", *asked, "--run", world.written("dense"), "--from", "both")
    values["recover"] = shown.splitlines()
    shown = world.command("diagnose", "--run", world.written("bm25"), "--index", index, "--topics", topics)
    values["diagnose"] = [line for line in shown.splitlines() if not re.search(r"seconds| s\b|/", line)]
    tiny, masked = map(str, encoders(world))
    small = "batch_size=4,max_steps=3,validation_queries=4,validation_candidates=10"
    studies = {
        "query": ["--model", "query:batch_size=4,max_steps=3,candidates=10", "--arms", "hard", "soft:labels=evidence"],
        "dual": ["--model", f"dual:{small}", "--encoder", tiny, "--arms", "plain", "soft:labels=evidence"],
        "sparse": ["--model", f"sparse:{small}", "--encoder", masked, "--arms", "plain", "heavy:lambda_d=0.1"],
        "late": ["--model", f"late:{small},dimension=16", "--encoder", tiny, "--arms", "plain"],
        "cross": ["--model", f"cross:{small}", "--encoder", tiny, "--arms", "lce", "bce:loss=bce"],
    }
    for name, flags in studies.items():
        more = ["--seeds", "1", "--folds", "2", "--first-stages", "bm25", "--test-candidates", "10"]
        more = [*more[:4], *more[4:]] if name not in ("query", "late") else more[:6]
        output = world.path(f"study-{name}.json")
        shown = world.command("study", *asked, "--output", output, *flags, *more)
        values[f"study-{name}"] = shown.splitlines()
    return values


def plans(world: World) -> dict[str, Any]:
    """Digests of what `regress NAME --dry-run` prints, for every query set."""
    from rnnreranker.regress.specs.spec import read_spec, spec_names, specs_folder

    values = {}
    for spec in spec_names(specs_folder()):
        for query_set in read_spec(specs_folder() / f"{spec}.yaml").query_sets.values():
            printed = world.command("regress", query_set.id, "--dry-run")
            values[query_set.id] = hashlib.sha256(printed.encode()).hexdigest()[:20]
    return dict(sorted(values.items()))


def matrix(world: World) -> dict[str, Any]:
    """What `regress --matrix` counts, and of every paper the digest of its listing."""
    return {"counts": world.command("regress", "--matrix").splitlines()} | {
        paper: hashlib.sha256(world.command("regress", paper).encode()).hexdigest()[:20]
        for paper in ("paper-000", "paper-001", "paper-002", "paper-003", "paper-004")
    }


GROUPS: dict[str, Callable[[World], dict[str, Any]]] = {
    function.__name__: function for function in (runs, labels, trainings, measures, fusions, laboratory, plans, matrix)
}


def machine() -> dict[str, str]:
    """What last digits depend on: digests are compared on the same machine and packages alone."""
    from importlib.metadata import version

    about = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    cpu = next((line.partition(":")[2].strip() for line in about if "model name" in line), "")
    return {"cpu": cpu} | {name: version(name) for name in ("numpy", "torch", "onnxruntime", "faiss-cpu")}


def main(groups: list[str]) -> None:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("RNNRERANKER_HOME", str(Path(folder) / "home"))
        world = World(Path(folder) / "world")
        for group in groups or GROUPS:
            VALUES.mkdir(exist_ok=True)
            text = json.dumps(GROUPS[group](world), indent=1, ensure_ascii=False)
            (VALUES / f"{group}.json").write_text(text + "\n", encoding="utf-8")
            print(group, len(text), flush=True)
        (VALUES / "machine.json").write_text(json.dumps(machine(), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
