"""Miniatures of what the spec `msmarco-passage` reads: data sets, models and prebuilt indexes in their original files.

Texts are those of pydoc; models have the real architecture and kind of tokenizer, two layers and drawn weights.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.files import write_json
from rnnreranker.base.settings import Written
from rnnreranker.data.documents import load_documents

DOCUMENTS, TOPICS = 300, 12
WIDTH, LAYERS, HEADS, LENGTH = 32, 2, 2, 512
TAS_B = "sebastian-hofstaetter/distilbert-dot-tas_b-b256-msmarco"
COCONDENSER = "Luyu/co-condenser-marco-retriever"
FAISS, LUCENE = "msmarco-v1-passage.distilbert-dot-tas_b-b256", "msmarco-v1-passage"


@dataclass(frozen=True)
class Query:
    """A query made of the first sentence of a document, which alone is relevant to it."""

    qid: int
    text: str
    document: int


class Texts:
    """Passages of pydoc, numbered from 0, and queries in sets that have none in common."""

    def __init__(self, documents: int = DOCUMENTS, topics: int = TOPICS) -> None:
        every = sorted(load_documents("pydoc"), key=lambda one: one.docid)
        drawn = random.Random(1).sample(every, documents)
        self.passages = [" ".join(one.text.split()) for one in drawn]
        asked: dict[str, int] = {}
        for number, one in enumerate(drawn):
            sentence = re.split(r"(?<=[.!?;:])\s", " ".join(one.text.split("\n", 1)[-1].split()))[0].rstrip(".!?;:")
            if len(sentence.split()) > 2:
                asked.setdefault(sentence.lower(), number)
        queries = [Query(1_000_003 + 7 * place, text, number) for place, (text, number) in enumerate(asked.items())]
        sizes = {"train": 4 * topics, "dev_small": topics, "dev": topics, "dl19": topics // 2, "dl20": topics // 2}
        self.sets: dict[str, list[Query]] = {}
        for name, size in sizes.items():
            self.sets[name], queries = queries[:size], queries[size:]

    def graded(self, query: Query) -> dict[int, int]:
        """Grade 3 for the passage of a query, 0 to 2 for nine others."""
        others = random.Random(query.qid).sample(range(len(self.passages)), 10)
        return {one: rank % 3 for rank, one in enumerate(others) if one != query.document} | {query.document: 3}


def _table(rows: Iterable[Iterable[object]], sign: str = "\t") -> bytes:
    return "".join(sign.join(map(str, row)) + "\n" for row in rows).encode()


def _tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def write_datasets(texts: Texts, folder: Path) -> dict[str, str]:
    """Write `msmarco-passage` as ir_datasets keeps it; the environment in which it is read."""
    base, sets = folder / "ir_datasets" / "msmarco-passage", texts.sets
    for name in ("train", "dev", "trec-dl-2019", "trec-dl-2020"):
        (base / name).mkdir(parents=True)
    dev = [*sets["dev_small"], *sets["dev"]]
    judged = {
        name: _table((one.qid, 0, one.document, 1) for one in asked)
        for name, asked in (("train", sets["train"]), ("dev", dev), ("small", sets["dev_small"]))
    }
    asked = (sets["train"], dev, sets["dev_small"])
    train, every, small = (_table((one.qid, one.text) for one in queries) for queries in asked)
    collection = _table(enumerate(texts.passages))
    members = {
        "collection.tsv": collection, "qrels.dev.small.tsv": judged["small"], "qrels.train.tsv": judged["train"],
        "queries.dev.small.tsv": small, "queries.dev.tsv": every, "queries.eval.small.tsv": b"",
        "queries.train.tsv": train,
    }  # fmt: skip
    _tar(base / "collectionandqueries.tar.gz", members)
    _tar(base / "queries.tar.gz", {"queries.dev.tsv": every, "queries.eval.tsv": b"", "queries.train.tsv": train})
    (base / "train" / "qrels").write_bytes(judged["train"])
    (base / "dev" / "qrels").write_bytes(judged["dev"])
    graded = [(one, other) for one in sets["train"] for other in texts.graded(one)]
    rows = [(one.qid, one.document, other) for one, other in graded if other != one.document]
    random.Random(2).shuffle(rows)
    for name in ("docpairs.tsv.gz", "qidpidtriples.train.full.2.tsv.gz"):
        (base / "train" / name).write_bytes(gzip.compress(_table(rows)))
    for year, name, ending in ((2019, "dl19", ""), (2020, "dl20", ".gz")):
        topics = _table((one.qid, one.text) for one in sets[name])
        path = base / f"trec-dl-{year}" / f"queries.tsv{ending}"
        path.write_bytes(gzip.compress(topics) if ending else topics)
        pairs = [(one.qid, pair) for one in sets[name] for pair in texts.graded(one).items()]
        lines = ((qid, "Q0" if year == 2019 else 0, *pair) for qid, pair in pairs)
        (base / f"trec-dl-{year}" / "qrels").write_bytes(_table(lines, " "))
    (base / "irds_version.txt").write_text("v2")
    return {"IR_DATASETS_HOME": str(base.parent), "IR_DATASETS_SKIP_DISK_FREE": "true"}


def _words(texts: Texts) -> list[str]:
    """BERT's vocabulary in small: `[PAD]`, 99 unused words, special ones, characters and the most frequent words."""
    counts = Counter(word for text in texts.passages for word in re.findall(r"[a-z]+|\d|[^\w\s]", text.lower()))
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    inside = [f"##{letter}" for letter in letters if letter.isalnum()]
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:1500]
    special = ["[PAD]", *(f"[unused{n}]" for n in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return list(dict.fromkeys([*special, *letters, *inside, *frequent]))


def _drawn(of: Any, config: Any, name: str) -> Any:
    """A model with weights drawn by its name; with the usual spread of .02 all texts would have about one vector."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(hashlib.sha256(name.encode()).hexdigest()[:8], 16))
        config.initializer_range = 0.2
        return of(config).eval()


def write_models(texts: Texts, folder: Path) -> dict[str, str]:
    """Write TAS-B, coCondenser, BERT, DistilBERT and RepBERT; the environment of a hub cache without a network."""
    words, home = _words(texts), folder / "huggingface"
    variables = {"HF_HOME": str(home), "HF_HUB_CACHE": str(home / "hub"), "HF_HUB_OFFLINE": "1"}
    os.environ.update(variables)  # read when transformers is imported
    import transformers

    shape = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 64}
    given = {"vocab_size": len(words), "max_position_embeddings": LENGTH, **shape}
    bert, wide = transformers.BertConfig(**given), transformers.BertConfig(**given | {"hidden_size": 128})
    distil = transformers.DistilBertConfig(
        vocab_size=len(words), n_heads=HEADS, max_position_embeddings=LENGTH, dim=WIDTH, hidden_dim=64, n_layers=LAYERS
    )
    kinds = {
        TAS_B: (transformers.DistilBertModel, distil),
        COCONDENSER: (transformers.BertModel, bert),
        "google-bert/bert-base-uncased": (transformers.BertForMaskedLM, wide),
        "distilbert/distilbert-base-uncased": (transformers.DistilBertForMaskedLM, distil),
        "checkpoints/repbert": (transformers.BertModel, bert),
    }
    for name, (of, config) in kinds.items():
        commit = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
        hub = home / "hub" / f"models--{name.replace('/', '--')}"
        path = folder / name if name.startswith("checkpoints/") else hub / "snapshots" / commit
        path.mkdir(parents=True)
        _drawn(of, config, name).save_pretrained(path)
        (path / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
        if not name.startswith("checkpoints/"):  # RepBERT's folder has no tokenizer but its words
            tokenizer = transformers.BertTokenizer.from_pretrained(path, model_max_length=LENGTH)
            tokenizer.save_pretrained(path)
            (hub / "refs").mkdir()
            (hub / "refs" / "main").write_text(commit)
    return variables


def write_prebuilt(texts: Texts, folder: Path) -> dict[str, str]:
    """Write Pyserini's Lucene and Faiss indexes under the names that it looks for; the environment of its cache."""
    from rnnreranker.base.java import start_java

    start_java()
    import faiss
    import jnius
    from pyserini.prebuilt_index_info import FAISS_INDEX_INFO, TF_INDEX_INFO

    from rnnreranker.encode.kinds import Encoder

    cache, corpus = folder / "pyserini", folder / "corpus"
    paths = {
        name: cache / "indexes" / f"{about[name]['filename'].removesuffix('.tar.gz')}.{about[name]['md5']}"
        for name, about in ((LUCENE, TF_INDEX_INFO), (FAISS, FAISS_INDEX_INFO))
    }
    corpus.mkdir()
    lines = (json.dumps({"id": str(number), "contents": text}) + "\n" for number, text in enumerate(texts.passages))
    (corpus / "documents.jsonl").write_text("".join(lines))
    flags = "-collection JsonCollection -generator DefaultLuceneDocumentGenerator -threads 1 -storePositions"
    flags += f" -storeDocvectors -storeRaw -optimize -quiet -input {corpus} -index {paths[LUCENE]}"
    jnius.autoclass("io.anserini.index.IndexCollection").main(flags.split())
    encoder = Encoder.load(TAS_B, pooling="cls", normalize=False, max_length=256)
    vectors = np.ascontiguousarray(encoder.encode(texts.passages, what="documents"))
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    paths[FAISS].mkdir(parents=True)
    faiss.write_index(index, str(paths[FAISS] / "index"))
    (paths[FAISS] / "docid").write_text("".join(f"{number}\n" for number in range(len(texts.passages))))
    return {"PYSERINI_CACHE": str(cache)}


def shortened(step: Any) -> Any:
    """The step without needs; a training takes two steps."""
    request = dict(step.request)
    if step.module == "train":
        model = request.get("model", Written("query", {}))
        few = {"max_steps": 2, "evaluate_every": 2} | ({"dimension": 16} if model.name == "late" else {})
        request["model"] = replace(model, params={**model.params, **few})
    return replace(step, request=request, needs={}, disk=0.0)


def write_environment(folder: Path) -> dict[str, str]:
    """Write everything into a folder, in which steps are then taken; their environment."""
    texts = Texts()
    variables = {"OMP_NUM_THREADS": "1", "RNNRERANKER_HOME": str(folder / "home")}
    variables |= write_datasets(texts, folder) | write_models(texts, folder)
    os.environ.update(variables)
    variables |= write_prebuilt(texts, folder)
    write_json(folder / "environment.json", variables)
    return variables


if __name__ == "__main__":
    write_environment(Path(sys.argv[1]))
