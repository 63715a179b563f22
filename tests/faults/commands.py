"""The commands that faults are put into: small inputs of all kinds, and command lines whose outputs do not vary."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SPEC = """\
schema: 3
name: small
title: A small spec
about: Nothing much.
query_sets:
  some: {topics: INPUTS/topics.tsv, qrels: INPUTS/qrels.txt, protocols: [trec]}
measures: [RR@10]
hits: 20
indexes:
  tiny: {documents: INPUTS/corpus.jsonl, parts: {dense: {encoder: INPUTS/encoder, pooling: mean}}}
conditions:
  dense: {title: dense, retrieve: {dense: {}}}
  dense-rnn: {title: dense + rNN, rerank: {rnn: {k: 5, context: 15}}, of: dense}
"""


@dataclass(frozen=True)
class Command:
    """A command line, run in an empty folder.

    Args:
        room: whose command it is; argv: its arguments, INPUTS stands for the folder of inputs.
        outputs: files and folders that it writes, each whole or not at all.
        before: further arguments that make another result at the same place, which this command then replaces; None
            where a result that is there is kept.
        kept: beginnings of names that may stay after an error or a signal, since the next run goes on from them.
        stages: further arguments that make results which may stand there whole before the last one does.
        codes: exit codes besides 2 that say of an error, of which each takes a line more.
        share: of the cases, beside those of other commands; less for those that take long.
    """

    room: str
    argv: str
    outputs: tuple[str, ...]
    before: str | None = None
    kept: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    share: float = 4

    def words(self, inputs: Path, more: str = "") -> list[str]:
        return f"{self.argv} {more}".replace("INPUTS", str(inputs)).split()


_QUERIES = "--topics INPUTS/topics.tsv --encoded-queries INPUTS/queries.npy"
_JUDGED = "--run INPUTS/run.txt --qrels INPUTS/qrels.txt"
_TRAIN = (
    "--labels INPUTS/labels.parquet --index INPUTS/index --topics INPUTS/topics.tsv "
    "--encoder INPUTS/encoder:pooling=mean --batch-size 8 --max-steps 4 --output model"
)
_QUERY = "query:evaluate_every=2,candidates=8"
_INDEX = "--documents INPUTS/corpus.jsonl --encoder INPUTS/encoder:pooling=mean --output index --overwrite"
_INDEX_KEPT = ("index.partial",)

COMMANDS = {
    "search": Command(
        "search",
        f"--index INPUTS/index {_QUERIES} --run INPUTS/run.txt --rerank rnn --k 4 --output run.txt",
        ("run.txt",),
        "--k 3",
    ),
    "search, encoding": Command(
        "search",
        "--index INPUTS/whole --topics INPUTS/topics.tsv --retriever dense --rerank rnn --k 4 --output run.txt.gz "
        "--explain q1 --explain-output page.html",
        ("run.txt.gz", "page.html"),
        "--k 3",
    ),
    "search, of a copy": Command(  # whose files are read whole, which the cache folder remembers
        "search",
        "--index INPUTS/copied --topics INPUTS/topics.tsv --retriever dense --rerank rnn --k 4 --output run.txt",
        ("run.txt",),
        "--k 3",
        share=2,
    ),
    "labels": Command(
        "labels",
        f"--index INPUTS/index {_QUERIES} {_JUDGED} --k 4 --shard-size 8 --jobs 1 --output labels.parquet",
        ("labels.parquet",),
        "--k 3",
        ("labels.parquet.",),
    ),
    "train": Command("train", f"{_TRAIN} --model {_QUERY}", ("model",), "--learning-rate 0.01", ("model.checkpoints",)),
    "train, scorer": Command(
        "train",
        f"{_TRAIN} --model {_QUERY} --scorer encoder",
        ("model",),
        "--learning-rate 0.01",
        ("model.checkpoints",),
    ),
    "train, dynamic": Command(
        "train",
        f"{_TRAIN} --model {_QUERY},refresh_every=1",
        ("model",),
        "--learning-rate 0.01",
        ("model.checkpoints",),
    ),
    "tune": Command(
        "tune",
        f"--index INPUTS/index {_QUERIES} {_JUDGED} --trials 3 --folds 2 --storage trials --output best.yaml",
        ("best.yaml",),
        "--storage other --seed 5",
        ("trials",),
        share=3,
    ),
    "regress": Command(
        "regress",
        "small --specs INPUTS/specs --output work --jobs 1",
        (
            "work/small/corpus.jsonl.tiny",
            "work/small/dense.some.txt",
            "work/small/dense-rnn.some.txt",
        ),
        None,
        ("work",),
        codes=(1,),  # an error in a condition: said by its step, and at the end with the conditions that it costs
        share=0.5,
    ),
    "index": Command(
        "index", f"{_INDEX} --parts dense,neighbours", ("index",), "--dtype float16", _INDEX_KEPT, ("--parts dense",)
    ),
    "index, impacts": Command(
        "index",
        f"{_INDEX} --parts dense,impact --dtype float16 --impact-encoder INPUTS/sparse",
        ("index",),
        "--parts dense,impact:weights=float",
        _INDEX_KEPT,
    ),
    "index, BM25": Command(
        "index",
        "--documents INPUTS/corpus.jsonl --parts bm25 --output index",
        ("index",),
        None,
        _INDEX_KEPT,
        share=2,
    ),
    "fuse": Command("fuse", "INPUTS/run.txt INPUTS/run2.txt --output fused.txt", ("fused.txt",), "--hits 3"),
    "negatives": Command(
        "negatives",
        f"--index INPUTS/index {_QUERIES} {_JUDGED} --rate 0.2 --k 4 --output negatives.tsv",
        ("negatives.tsv",),
        "--k 3",
    ),
    "evaluate": Command(
        "evaluate",
        "--qrels INPUTS/qrels.txt INPUTS/run.txt INPUTS/run2.txt --json found.json",
        ("found.json",),
        "--measures RR@5",
    ),
}
IMPORTS = {
    "train": ("torch", "transformers", "accelerate", "rnnreranker.train.query.learner", "rnnreranker.labels.soft"),
    "tune": ("optuna", "optuna.storages.journal"),
    "index": ("torch", "transformers", "sentence_transformers", "faiss"),
    "search": ("torch", "transformers", "faiss", "rnnreranker.search.explain"),
}


def make_inputs(folder: Path, names: Sequence[str]) -> None:
    """Files of all kinds that these commands read, in a new folder."""
    import numpy as np
    from tiny_encoder import WORDS, make_encoder, make_qrels, make_queries, make_run, make_source, make_topics

    read = " ".join(COMMANDS[name].argv + (SPEC if name == "regress" else "") for name in names)
    for name in ("encoder", "index", "specs"):
        (folder / name).mkdir(parents=True)
    make_source(folder / "index")
    topics, queries = make_topics(), make_queries()
    (folder / "topics.tsv").write_text("".join(f"{qid}\t{text}\n" for qid, text in topics.items()))
    np.save(folder / "queries.npy", queries.vectors)
    (folder / "queries.ids").write_text("".join(f"{qid}\n" for qid in queries.qids))
    make_run().write(folder / "run.txt")
    make_run(9).write(folder / "run2.txt")
    judged = (f"{qid} 0 {docid} {grade}\n" for qid, docid, grade in make_qrels().itertuples(index=False))
    (folder / "qrels.txt").write_text("".join(judged))
    rng = np.random.default_rng(7)
    texts = (" ".join(rng.choice(WORDS, size=6)) for _ in range(60))
    lines = (json.dumps({"id": f"d{n}", "text": text}) + "\n" for n, text in enumerate(texts))
    (folder / "corpus.jsonl").write_text("".join(lines))
    (folder / "specs" / "small.yaml").write_text(SPEC.replace("INPUTS", str(folder)))
    if "INPUTS/encoder" in read or "INPUTS/whole" in read or "INPUTS/copied" in read:
        make_encoder(folder / "encoder")
    if "INPUTS/sparse" in read:
        from test_impacts import make_masked_model

        make_masked_model(folder / "sparse")
    labels = f"--index INPUTS/index {_QUERIES} {_JUDGED} --k 4 --output INPUTS/labels.parquet"
    whole = "--documents INPUTS/corpus.jsonl --encoder INPUTS/encoder:pooling=mean --output INPUTS/whole"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for room, argv, output in (("labels", labels, "INPUTS/labels.parquet"), ("index", whole, "INPUTS/whole")):
            if output in read or (room == "index" and "INPUTS/copied" in read):
                assert main_of(room)(argv.replace("INPUTS", str(folder)).split()) == 0
    if "INPUTS/copied" in read:
        shutil.copytree(folder / "whole", folder / "copied", copy_function=shutil.copyfile)  # times are not kept


def main_of(room: str) -> Callable[[list[str]], int]:
    """The function that runs a command."""
    import importlib

    from rnnreranker.regress.specs.methods import module_of

    return importlib.import_module(module_of(room)).main  # type: ignore[no-any-return]
