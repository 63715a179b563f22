"""`msmarco-passage` as ir_datasets keeps it: tars of passages and queries, judgements, triples, topics of TREC DL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rnnreranker.data.document import Document
from rnnreranker.regress.rehearsal.datasets import msmarco
from rnnreranker.regress.rehearsal.datasets.archives import table, write_file, write_rows, write_tar
from rnnreranker.regress.rehearsal.datasets.msmarco import NumberedQuery, line_of, topic_rows
from rnnreranker.regress.rehearsal.source import Source

NAME = "msmarco-passage"
TRIPLES = 4  # of a training query


def holds(name: str) -> bool:
    """Whether a name is of this family."""
    return name.partition("/")[0] == NAME


def documents(source: Source) -> Iterator[Document]:
    """The passages, numbered from 0."""
    for number, text in enumerate(source.documents):
        yield Document(str(number), line_of(text.text))


def write(source: Source, folder: Path) -> dict[str, str]:
    """Write the family under `folder`, and say which environment variables name it."""
    home = folder / msmarco.HOME
    base = home / NAME
    sets = msmarco.sets_of(source)
    judged = [_qrels(one) for one in (sets.train, sets.dev, sets.dev_small)]
    small = table(topic_rows(sets.dev_small))
    train = table(topic_rows([*sets.train, *sets.unjudged]))
    every = table(topic_rows([*sets.dev, *sets.unjudged]))
    unjudged = table(topic_rows(sets.unjudged))
    collection = table((one.docid, one.text) for one in documents(source))
    write_tar(
        base / "collectionandqueries.tar.gz",
        {
            "collection.tsv": collection,
            "qrels.dev.small.tsv": judged[2],
            "qrels.train.tsv": judged[0],
            "queries.dev.small.tsv": small,
            "queries.dev.tsv": every,
            "queries.eval.small.tsv": unjudged,
            "queries.train.tsv": train,
        },
    )
    write_tar(
        base / "queries.tar.gz",
        {"queries.dev.tsv": every, "queries.eval.tsv": unjudged, "queries.train.tsv": train},
    )
    write_file(base / "train/qrels", judged[0])
    write_file(base / "dev/qrels", judged[1])
    triples = list(_triples(source, sets.train))
    write_rows(base / "train/docpairs.tsv.gz", triples)
    write_rows(base / "train/qidpidtriples.train.full.2.tsv.gz", triples)
    for year, asked, ending in ((2019, sets.dl19, ""), (2020, sets.dl20, ".gz")):
        folder_of_year = base / f"trec-dl-{year}"
        write_rows(folder_of_year / f"queries.tsv{ending}", topic_rows([*asked, *sets.unjudged]))
        rows = [
            (one.qid, "Q0" if year == 2019 else 0, *pair) for one in asked for pair in source.graded(one.query).items()
        ]
        write_rows(folder_of_year / "qrels", rows, " ")
    write_file(base / "irds_version.txt", b"v2")
    return {"IR_DATASETS_HOME": str(home.absolute()), **msmarco.VARIABLES}


def _qrels(asked: list[NumberedQuery]) -> bytes:
    return table((one.qid, 0, passage, 1) for one in asked for passage in one.query.relevant)


def _triples(source: Source, asked: list[NumberedQuery]) -> Iterator[tuple[int, int, int]]:
    """Query, relevant passage, another: as many for each query, in an order that mixes the queries."""
    rows = []
    for one in asked:
        others = [number for number in range(len(source.documents)) if number not in one.query.grades]
        for passage in one.query.relevant[:1]:
            rows += [(one.qid, passage, other) for other in source.shuffled(others, "triples", one.qid)[:TRIPLES]]
    yield from source.shuffled(rows, "triples")
