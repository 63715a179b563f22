"""A made-up world to train in: a BERT of two layers, 24 queries, 60 documents with random vectors, a run."""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import torch
from labelers import soft_labels
from query_sets import write_documents, write_index, write_texts

from rnnreranker.labels import SoftLabels
from rnnreranker.parts.vectors import QueryVectors, VectorSource, open_vectors
from rnnreranker.runs import Run

WORDS = [f"w{number}" for number in range(40)]
LATE_WORDS = [*WORDS, *string.punctuation, "[unused0]", "[unused1]"]
QUERIES, DOCUMENTS, DIMENSION = 24, 60, 32


def make_encoder(
    folder: Path, words: Sequence[str] = WORDS, size: int = DIMENSION, length: int = 64, kind: str = "BertModel",
    seed: int = 0, **config: Any,
) -> Path:  # fmt: skip
    """A BERT of two layers with a vocabulary of these words, in vectors of `size` numbers, as a transformers folder."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n")
    torch.manual_seed(seed)
    sizes = {"vocab_size": 5 + len(words), "hidden_size": size, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 2 * size, "max_position_embeddings": length, **config}
    getattr(transformers, kind)(transformers.BertConfig(**sizes)).save_pretrained(folder)
    tokenizer = transformers.BertTokenizer.from_pretrained(folder, model_max_length=length)
    assert tokenizer(words[3])["input_ids"] == [2, 8, 3]
    tokenizer.save_pretrained(folder)
    return folder


def make_cross_encoder(folder: Path, seed: int = 0, labels: int = 1) -> Path:
    """As `make_encoder`, a model that tells pairs of texts apart."""
    kind = "BertForSequenceClassification"
    return make_encoder(folder, kind=kind, seed=seed, initializer_range=0.2, num_labels=labels)


def make_masked(folder: Path, words: Sequence[str] = WORDS, **config: Any) -> Path:
    """As `make_encoder`, a masked-language model."""
    return make_encoder(folder, words, kind="BertForMaskedLM", **config)


def make_late(folder: Path) -> Path:
    """A late-interaction encoder of the BERT of `make_encoder` in the folder `bert` beside it, 16 numbers a token."""
    from rnnreranker.encode.late import make_late_base

    make_late_base(str(make_encoder(folder.with_name("bert"), LATE_WORDS)), folder, 16)
    return folder


def make_topics() -> dict[str, str]:
    """Two to eight words a query."""
    rng = np.random.default_rng(1)
    return {f"q{n}": " ".join(rng.choice(WORDS, size=int(rng.integers(2, 9)))) for n in range(QUERIES)}


def make_source(folder: Path, dimension: int = DIMENSION) -> VectorSource:
    """Documents d0, d1, ... with normal vectors, written to the folder and opened."""
    return open_vectors(write_index(folder, np.random.default_rng(2).standard_normal((DOCUMENTS, dimension))))


def make_texts() -> dict[str, str]:
    """One to 70 words a document, and none for d7: some are too long for the models of this module."""
    rng = np.random.default_rng(7)
    texts = {f"d{n}": " ".join(rng.choice(WORDS, size=int(rng.integers(1, 71)))) for n in range(DOCUMENTS)}
    return texts | {"d7": ""}


def make_index(folder: Path) -> Path:
    """An index as the command writes it, of the documents' vectors and texts."""
    from rnnreranker.data.document import Document
    from rnnreranker.parts.texts import CorpusWriter

    folder.mkdir(parents=True, exist_ok=True)
    make_source(folder)
    with CorpusWriter(folder) as corpus:
        for docid, text in make_texts().items():
            corpus.add(Document(docid, text))
    return folder


def make_run(hits: int = 12) -> Run:
    """Other documents in another order for every query, as of a retriever that has nothing to do with the vectors."""
    rng = np.random.default_rng(4)
    return Run.from_dict(
        {
            f"q{n}": {f"d{row}": 100.0 - rank for rank, row in enumerate(rng.permutation(DOCUMENTS)[:hits])}
            for n in range(QUERIES)
        }
    )


def make_qrels() -> pandas.DataFrame:
    """Two positives a query, of grades 2 and 1."""
    rng = np.random.default_rng(5)
    found = [
        (f"q{n}", f"d{row}", 2 - place)
        for n in range(QUERIES)
        for place, row in enumerate(rng.permutation(DOCUMENTS)[:2])
    ]
    return pandas.DataFrame(found, columns=["query_id", "doc_id", "relevance"])


def make_queries(dimension: int = DIMENSION) -> QueryVectors:
    """Random vectors of the queries."""
    rng = np.random.default_rng(6)
    return QueryVectors(
        tuple(f"q{n}" for n in range(QUERIES)), rng.standard_normal((QUERIES, dimension)).astype(np.float32)
    )


def make_documents() -> dict[str, str]:
    """Three to twelve words a document."""
    rng = np.random.default_rng(7)
    return {f"d{n}": " ".join(rng.choice(WORDS, size=int(rng.integers(3, 13)))) for n in range(DOCUMENTS)}


def make_text_labels(hits: int = 12) -> SoftLabels:
    """For every query the documents that share most words with it, the first of them positive, and a teacher's targets:
    the softmax of the number of words in common."""
    topics, documents = make_topics(), make_documents()
    docids, scores, targets, positive = [], [], [], []
    for text in topics.values():
        common = {docid: len(set(text.split()) & set(own.split())) for docid, own in documents.items()}
        chosen = sorted(documents, key=lambda docid: (-common[docid], docid))[:hits]
        counts = np.array([float(common[docid]) for docid in chosen])
        docids.append(chosen)
        scores.append(counts.tolist())
        targets.append((np.exp(counts) / np.exp(counts).sum()).tolist())
        positive.append([place == 0 for place in range(hits)])
    return soft_labels(list(topics), docids, scores, targets, positive, {"method": "words in common"})


def write_text_world(folder: Path) -> Path:
    """The folder with labels.parquet, topics.tsv and documents.jsonl of the world of texts."""
    folder.mkdir(exist_ok=True)
    make_text_labels().write(folder / "labels.parquet")
    write_texts(folder / "topics.tsv", make_topics())
    write_documents(folder / "documents.jsonl", make_documents())
    return folder


def make_group_inputs() -> Any:
    """Groups of twelve queries; training and validation queries are the same under other ids."""
    from rnnreranker.train.groups import GroupInputs

    pools, topics = list(make_text_labels())[:12], make_topics()
    checked = [replace(one, qid=f"v{one.qid}") for one in pools]
    texts = {**topics, **{f"v{qid}": text for qid, text in topics.items()}}
    return GroupInputs(pools, checked, texts, make_documents(), {})


def make_group(qid: str, docids: tuple[str, ...], targets: list[float], known: set[str]) -> Any:
    """A group of documents to train with, whose first is positive."""
    from rnnreranker.labels.soft import Labels
    from rnnreranker.train.groups import Group

    given = np.array(targets, dtype=np.float32)
    return Group(Labels(qid, list(docids), given, given, np.arange(len(docids)) == 0), docids, known)


def train_encoder(
    labels: SoftLabels, source: VectorSource, topics: dict[str, str], encoder: str, output: Path, params: Any = None,
    *, pooling: str | None = None, **inputs: Any,
) -> Any:  # fmt: skip
    """A query encoder, trained on objects in place of files; inputs: as of `CoderInputs`."""
    from rnnreranker.train.coder import CoderInputs
    from rnnreranker.train.models import QueryModel
    from rnnreranker.train.params import TrainParams
    from rnnreranker.train.request import Start

    given = CoderInputs(labels, source, topics, **inputs)
    chosen = params or TrainParams()
    return QueryModel().train_on(given, Start(encoder, {} if pooling is None else {"pooling": pooling}), output, chosen)


def record_of(folder: Path) -> Any:
    """What a training wrote of itself."""
    return json.loads((folder / "training.json").read_text())


def train_words(kind: str, world: Path, encoder: Path, *argv: str) -> list[str]:
    """The words of a training in the world of texts, whose output is world/out."""
    words = f"--model {kind} --topics {world}/topics.tsv --documents {world}/documents.jsonl --output {world}/out"
    return [*f"{words} --encoder {encoder} --device cpu".split(), *argv]
