"""`msmarco-passage-v2` as ir_datasets keeps it: a tar of bundles, queries and judgements of each set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rnnreranker.data.document import Document
from rnnreranker.regress.rehearsal.datasets import msmarco
from rnnreranker.regress.rehearsal.datasets.archives import write_file, write_rows, write_tar
from rnnreranker.regress.rehearsal.datasets.msmarco import topic_rows
from rnnreranker.regress.rehearsal.datasets.msmarco_v2 import bundles, version_2
from rnnreranker.regress.rehearsal.source import Source

NAME = "msmarco-passage-v2"


def holds(name: str) -> bool:
    """Whether a name is of this family."""
    return name.partition("/")[0] == NAME


def documents(source: Source) -> Iterator[Document]:
    """The passages, in the order of their bundles."""
    for pid, _, text in version_2(source).passages:
        yield Document(pid, text)


def write(source: Source, folder: Path) -> dict[str, str]:
    """Write the family under `folder`, and say which environment variables name it."""
    home = folder / msmarco.HOME
    base = home / NAME
    made, sets = version_2(source), msmarco.sets_of(source)
    write_tar(base / "msmarco_v2_passage.tar", bundles(made.passage_lines, "passage"))
    for part, judged, others in (
        ("train", sets.train, sets.unjudged),
        ("dev1", sets.dev1, []),
        ("dev2", sets.dev2, []),
    ):
        write_rows(base / part / "queries.tsv", topic_rows([*judged, *others]))
        rows = [(one.qid, 0, made.passages[passage][0], 1) for one in judged for passage in one.query.relevant]
        write_rows(base / part / "qrels.tsv", rows)
    write_rows(base / "trec-dl-2021/queries.tsv", topic_rows([*sets.dl21, *sets.unjudged]))
    graded = [(one, source.graded(one.query)) for one in sets.dl21]
    rows = [(one.qid, 0, made.passages[passage][0], grade) for one, of in graded for passage, grade in of.items()]
    write_rows(base / "trec-dl-2021/qrels", rows, " ")
    for name in ("irds_version.txt", "qrels_version.txt"):
        write_file(base / name, b"v2")
    return {"IR_DATASETS_HOME": str(home.absolute()), **msmarco.VARIABLES}
