"""`msmarco-document-v2` as ir_datasets keeps it: a tar of bundles, queries and judgements of TREC DL 2021."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rnnreranker.data.document import Document
from rnnreranker.regress.rehearsal.datasets import msmarco
from rnnreranker.regress.rehearsal.datasets.archives import write_rows, write_tar
from rnnreranker.regress.rehearsal.datasets.msmarco import topic_rows
from rnnreranker.regress.rehearsal.datasets.msmarco_v2 import bundles, version_2
from rnnreranker.regress.rehearsal.source import Source

NAME = "msmarco-document-v2"


def holds(name: str) -> bool:
    """Whether a name is of this family."""
    return name.partition("/")[0] == NAME


def documents(source: Source) -> Iterator[Document]:
    """The documents, in the order of their bundles; their title is their one heading."""
    for docid, title, body in version_2(source).documents:
        yield Document(docid, f"{title} {title} {body}")


def write(source: Source, folder: Path) -> dict[str, str]:
    """Write the family under `folder`, and say which environment variables name it."""
    home = folder / msmarco.HOME
    base = home / NAME
    made, sets = version_2(source), msmarco.sets_of(source)
    write_tar(base / "msmarco_v2_doc.tar", bundles(made.document_lines, "doc"))
    for part, judged in (("train", sets.train), ("dev1", sets.dev1), ("dev2", sets.dev2)):
        write_rows(base / part / "queries.tsv", topic_rows([*judged, *sets.unjudged]))
        rows = [(one.qid, 0, docid, 1) for one in judged for docid in made.documents_of(one.query.relevant)]
        write_rows(base / part / "qrels", rows)
    write_rows(base / "trec-dl-2021/queries.tsv", topic_rows([*sets.dl21, *sets.unjudged]))
    rows = []
    for one in sets.dl21:
        grades: dict[str, int] = {}
        for passage, grade in source.graded(one.query).items():
            for docid in made.documents_of([passage]):
                grades[docid] = max(grade, grades.get(docid, 0))
        rows += [(one.qid, 0, docid, grade) for docid, grade in grades.items()]
    write_rows(base / "trec-dl-2021/qrels", rows, " ")
    return {"IR_DATASETS_HOME": str(home.absolute()), **msmarco.VARIABLES}
