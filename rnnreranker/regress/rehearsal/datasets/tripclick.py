"""TripClick as its owner hands it out: an archive, the same unpacked, and the training sets put together of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rnnreranker.data.document import Document
from rnnreranker.data.tripclick import GROUPS, SPLITS, VARIABLE
from rnnreranker.regress.rehearsal.datasets.archives import table, write_file, write_rows, write_tar
from rnnreranker.regress.rehearsal.datasets.msmarco import HOME, VARIABLES, line_of
from rnnreranker.regress.rehearsal.source import Source, SourceQuery

NAME = "tripclick"
FILES = 4  # of documents
FIRST_DOCID, DOCID_STEP = 7_800_001, 13
FIRST_QID = 1
SHARES = {"train": 2.0, "val": 0.5, "test": 0.5}  # of the topics of a test set, for each group
JOINED = {"tripclick-train": GROUPS, "tripclick-head-torso-train": GROUPS[:2]}


def holds(name: str) -> bool:
    """Whether a name is of this family."""
    return name == NAME or name.startswith((f"{NAME}-", f"{NAME}/"))


def documents(source: Source) -> Iterator[Document]:
    """The abstracts, under their titles."""
    for number, text in enumerate(source.documents):
        yield Document(_docid(number), f"{text.title}\n{line_of(text.text)}")


def write(source: Source, folder: Path) -> dict[str, str]:
    """Write the family under `folder`, and say which environment variables name it."""
    asked = _asked(source)
    members = _document_files(source)
    for (group, split), topics in asked.items():
        members[f"benchmark/topics/topics.{group}.{split}.txt"] = _topics(topics)
        raw = [
            (qid, 0, _docid(one), int(grade > 0))
            for qid, query in topics.items()
            for one, grade in query.grades.items()
        ]
        members[f"benchmark/qrels/qrels.raw.{group}.{split}.txt"] = table(raw, " ")
        if group == "head":
            graded = {qid: source.graded(query) for qid, query in topics.items()}
            dctr = [(qid, 0, _docid(one), grade) for qid, grades in graded.items() for one, grade in grades.items()]
            members[f"benchmark/qrels/qrels.dctr.head.{split}.txt"] = table(dctr, " ")
    write_tar(folder / HOME / NAME / "benchmark.tar.gz", members)
    for name, content in members.items():
        write_file(folder / NAME / name, content)
    for name, groups in JOINED.items():
        topics = {qid: query for group in groups for qid, query in asked[group, "train"].items()}
        write_rows(folder / f"{name}.tsv", [(qid, query.text) for qid, query in topics.items()])
        rows = [(qid, 0, _docid(one), 1) for qid, query in topics.items() for one in query.relevant]
        write_rows(folder / f"{name}.txt", rows, " ")
    home = str((folder / HOME).absolute())
    return {VARIABLE: str((folder / NAME).absolute()), "IR_DATASETS_HOME": home, **VARIABLES}


def _asked(source: Source) -> dict[tuple[str, str], dict[int, SourceQuery]]:
    counts = {f"{group} {split}": int(SHARES[split] * source.topics) for split in SPLITS for group in GROUPS}
    asked = {}
    number = FIRST_QID
    for name, queries in source.parts(NAME, counts).items():
        group, split = name.split()
        asked[group, split] = dict(enumerate(queries, number))
        number += len(queries)
    return asked


def _document_files(source: Source) -> dict[str, bytes]:
    """Files of <DOC>s, each with its share of the documents."""
    files: dict[str, list[str]] = {}
    for number, text in enumerate(source.documents):
        name = f"benchmark/documents/docs_grp_{number * FILES // len(source.documents):02d}.txt"
        files.setdefault(name, []).append(
            f"<DOC>\n<DOCNO>{_docid(number)}</DOCNO>\n<TITLE>{text.title}</TITLE>\n<URL>https://example.org/{number}</URL>\n"
            f"<TEXT>\n{line_of(text.text)}\n</TEXT>\n</DOC>\n"
        )
    return {name: "".join(of).encode() for name, of in files.items()}


def _topics(topics: Mapping[int, SourceQuery]) -> bytes:
    return "".join(
        f"<top>\n\n<num> Number: {qid}\n<title> {query.text}\n\n<desc> Description:\n\n<narr> Narrative:\n\n</top>\n\n"
        for qid, query in topics.items()
    ).encode()


def _docid(number: int) -> str:
    return str(FIRST_DOCID + DOCID_STEP * number)
