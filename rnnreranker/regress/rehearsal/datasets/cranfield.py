"""`cranfield` as ir_datasets keeps it: one tar of abstracts, questions and judgements."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.regress.rehearsal.datasets import msmarco
from rnnreranker.regress.rehearsal.datasets.archives import table, write_tar
from rnnreranker.regress.rehearsal.datasets.msmarco import line_of
from rnnreranker.regress.rehearsal.source import Source

NAME = "cranfield"
CODES = {3: 1, 2: 2, 1: 4, 0: -1}  # a complete answer is 1


def holds(name: str) -> bool:
    """Whether a name is of this family."""
    return name == NAME


def write(source: Source, folder: Path) -> dict[str, str]:
    """Write the archive under `folder`, and say which environment variables name it."""
    home = folder / msmarco.HOME
    asked = source.parts(NAME, {"test": 2 * source.topics})["test"]
    documents = "".join(
        f".I {number}\n.T\n{one.title} .\n.A\nnobody\n.B\npydoc\n.W\n{line_of(one.text)}\n"
        for number, one in enumerate(source.documents, 1)
    )
    queries = "".join(f".I {number:03d}\n.W\n{query.text} .\n" for number, query in enumerate(asked, 1))
    judged = [
        (number, document + 1, CODES[grade])
        for number, query in enumerate(asked, 1)
        for document, grade in source.graded(query).items()
    ]
    members = {"cran.all.1400": documents.encode(), "cran.qry": queries.encode(), "cranqrel": table(judged, " ")}
    write_tar(home / NAME / "cran.tar.gz", members)
    return {"IR_DATASETS_HOME": str(home.absolute()), **msmarco.VARIABLES}
