"""Local data sets by name: files, folders in BEIR layout, TripClick's release, ReQA sets made from downloaded files.

A folder in BEIR layout holds `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`, plain or .gz. `FOLDER` is its
split `test` (or its only one), `FOLDER:SPLIT` another, see also `splits`. `collections/NAME` is a folder in
`collections_home`, `reqa:FILE` the ReQA set made from a file or folder.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.files import cache_home
from rnnreranker.data import reqa, splits, tripclick
from rnnreranker.data.names import BUILT_IN_TOPICS, COLLECTIONS, PYDOC_FILES, is_file, is_there
from rnnreranker.data.records import FORMS, Judgement, read_qrels, read_topics

LAYOUT = "corpus.jsonl, queries.jsonl and qrels/test.tsv"
OF_BEIR = {"documents": "corpus.jsonl", "topics": "queries.jsonl"}
NO_DOCUMENTS = ("queries", "query", "topics", "qrels")  # beginnings of the names of other files


def collections_home() -> Path:
    """The folder of one's own collections: RNNRERANKER_COLLECTIONS, else `data` in the cache."""
    named = os.environ.get("RNNRERANKER_COLLECTIONS")
    return Path(named).expanduser() if named else cache_home() / "data"


def files_of(name: str, part: str) -> list[Path]:
    """The files that hold "documents", "topics" or "qrels" of a name; [] for other names, as ids of ir_datasets.

    Raises:
        InputError: a path that does not exist, a folder in BEIR layout without this part or split.
        UnavailableError: a data set that is not here.
    """
    if not name.strip():
        raise InputError(f"{part}: an empty name; expected a file, a folder or the name of a data set")
    path = Path(name).expanduser()
    if is_there(name):
        return [path]
    if tripclick.is_name(name):
        kept = tripclick.path_of(name, part)
        return [] if kept is None else _document_files(kept) if part == "documents" else [kept]
    if name in BUILT_IN_TOPICS:
        return [] if part == "documents" else [PYDOC_FILES / files[part == "qrels"] for files in BUILT_IN_TOPICS[name]]
    if part == "documents" and path.is_dir() and _named_as_path(name) and not _in_beir_layout(path):
        return _document_files(path)
    if beir := beir_folder(name):
        folder, split = beir
        file = _qrels_file(folder, split) if part == "qrels" else _plain_or_gz(folder / OF_BEIR[part])
        if file is None:
            raise InputError(f"{folder}: no {OF_BEIR[part]} in this folder; expected the layout of BEIR")
        return [file]
    is_file(name, part)
    return []


def beir_folder(name: str) -> tuple[Path, str] | None:
    """The folder in BEIR layout of `FOLDER` or `FOLDER:SPLIT`, and the split or ""; None for other names.

    Raises:
        InputError: a folder or file of another layout.
        UnavailableError: a collection that is not here.
    """
    located = _located(name)
    if located is None:
        first = name.removeprefix(reqa.MADE_FROM).partition(":")[0]
        if first in reqa.NAMES or first.startswith(COLLECTIONS):
            raise UnavailableError(
                f"{name}: no folder {collections_home() / first.removeprefix(COLLECTIONS)}; put "
                f"{reqa.NAMES.get(first, LAYOUT)} there, or set RNNRERANKER_COLLECTIONS to the folder that holds it"
            )
        if reqa.is_name(name):
            raise InputError(f"{name}: no such file; expected one in the format of SQuAD")
        return None
    path, split = located
    if _in_beir_layout(path):
        return path, split
    if reqa.is_name(name):
        return reqa.made_folder(path), split
    if path.is_dir() and _named_as_path(name):
        raise InputError(f"{path}: a folder without corpus.jsonl and queries.jsonl; expected the layout of BEIR")
    return None


def judged(name: str) -> list[Judgement]:
    """The judgements of a name with files, in their order; those of a split of `splits` in its order of queries.

    Raises:
        InputError, UnavailableError: as `files_of`; a malformed line, a query without a text, too few for splits.
    """
    rows = [*read_qrels(files_of(name, "qrels"))]
    if not splits.is_split(split := name.rpartition(":")[2]):
        return rows
    topics = read_topics(files := files_of(name, "topics"))
    relevant = [qid for qid, _, grade, _ in rows if grade.strip("+0.") and grade[0] != "-"]
    if lacking := [qid for qid in relevant if qid not in topics]:
        raise InputError(f"{files[0]}: no question {lacking[0]}, which the qrels of {name} judge; expected all of them")
    chosen = splits.parts_of({qid: topics[qid] for qid in relevant}, name)[split]
    numbers = {qid: number for number, qid in enumerate(chosen)}
    return sorted((row for row in rows if row[0] in numbers), key=lambda row: numbers[row[0]])


def kept_at(name: str) -> Path | None:
    """The existing file or folder that a name is read from, or None."""
    located = (tripclick.home(), "") if tripclick.is_name(name) else _located(name)
    return located[0] if located and located[0].exists() else None


def _located(name: str) -> tuple[Path, str] | None:
    """The existing file or folder of a name, and the split behind it."""
    name = name.removeprefix(reqa.MADE_FROM)
    for text, split in ((name, ""), name.rpartition(":")[::2]):
        paths = [Path(text).expanduser()] if text and text not in reqa.NAMES else []
        if text.startswith(COLLECTIONS) or text in reqa.NAMES:
            paths.append(collections_home() / text.removeprefix(COLLECTIONS))
        if there := next(filter(os.path.exists, paths), None):
            return there, split
    return None


def _document_files(folder: Path) -> list[Path]:
    """The files of documents in a folder by name, numbers in names by value."""
    tripclicks = [*folder.glob("docs_grp_*.txt*")]
    every = tripclicks or [one for one in folder.iterdir() if ".txt" not in one.name and one.name[0] != "."]
    endings = {one: one.name.removesuffix(".gz").rpartition(".")[2] for one in every if one.is_file()}
    known = {one: ending for one, ending in endings.items() if ending in (*FORMS, "txt")}
    if len({*known.values()}) != 1 or any(file.name.startswith(NO_DOCUMENTS) for file in known):
        raise InputError(
            f"{folder}: a folder of {', '.join(sorted(file.name for file in known)[:5]) or 'no known files'}; expected "
            f"documents alone, all of one kind ({', '.join(FORMS)}), or the layout of BEIR"
        )
    return sorted(
        known, key=lambda one: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", one.name)]
    )


def _named_as_path(name: str) -> bool:
    return "/" in name or name.startswith((".", "~"))


def _in_beir_layout(folder: Path) -> bool:
    return (folder / "qrels").is_dir() or any(_plain_or_gz(folder / file) for file in OF_BEIR.values())


def _qrels_file(folder: Path, split: str) -> Path:
    ends = (".tsv.gz", ".tsv")  # a plain file goes before its .gz; others, as backups, are none of ours
    files = {path.name.removesuffix(end): path for end in ends for path in sorted((folder / "qrels").glob(f"*{end}"))}
    if not split or splits.is_split(split):
        split = "test" if "test" in files or len(files) != 1 else next(iter(files))
    if split not in files:
        raise InputError(
            f"{folder}: no qrels/{split}.tsv; splits here: {', '.join(files) or 'none'}; expected one of them, as "
            f"{folder}:{next(iter(files), 'dev')}, or {splits.EXPECTED}"
        )
    return files[split]


def _plain_or_gz(path: Path) -> Path | None:
    return next((file for file in (path, path.with_name(path.name + ".gz")) if file.is_file()), None)
