"""Local data sets by name: folders in BEIR layout, TripClick's release, ReQA sets made from downloaded files.

A folder in BEIR layout holds `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`, plain or .gz. `FOLDER` is its
split `test` (or its only one), `FOLDER:SPLIT` another, `FOLDER:cold-1-train` a part of the first, see `splits`.
`collections/NAME` is the folder NAME in `collections_home`. `reqa:FILE` is the ReQA set made from a file or folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.data import reqa, splits, tripclick
from rnnreranker.data.names import COLLECTIONS, collections_home, is_there
from rnnreranker.data.records import FORMS

NO_DOCUMENTS = ("queries", "query", "topics", "qrels")  # so begin the names of files of something else
FILES = {"documents": "corpus.jsonl", "topics": "queries.jsonl"}


def source(name: str, part: str) -> str:
    """The file (or folder of documents, or ir_datasets id) that holds a part of the data set; other names as they are.

    Args:
        name: as given to a command.
        part: "documents", "topics" or "qrels".

    Raises:
        InputError: a folder in BEIR layout that lacks this part or split.
        UnavailableError: a folder of `collections/`, TripClick or a ReQA set that is not here (with where to put it).
    """
    if not name.strip():
        raise InputError(f"{part}: an empty name; expected a file, a folder or the name of a data set")
    if is_there(name):
        return name
    if tripclick.is_name(name):
        return tripclick.source(name, part)
    folder = Path(name).expanduser()
    if part == "documents" and folder.is_dir() and (tripclick.holds_documents(folder) or _of_files(name, folder)):
        return str(folder)
    folder_and_split = _folder(name)
    if folder_and_split is None:
        return name
    folder, split = folder_and_split
    if part == "qrels":
        return str(_qrels_file(folder, split))
    file = _plain_or_gz(folder / FILES[part])
    if file is None:
        raise InputError(f"{name}: no {FILES[part]} in this folder; expected the layout of BEIR")
    return str(file)


def document_files(path: Path) -> list[Path]:
    """The files of documents that a path stands for: itself, or those of a folder in the order of their names.

    Raises:
        InputError: a folder without such files, or with files of several kinds.
    """
    if not path.is_dir():
        return [path]
    if tripclick.holds_documents(path):
        return list(tripclick.document_files(path))
    kinds: dict[str, list[Path]] = {}
    for file in sorted(path.iterdir()):
        ending = file.name.removesuffix(".gz").rpartition(".")[2]
        if ending in FORMS and file.is_file() and not file.name.startswith("."):
            kinds.setdefault("topics or qrels" if file.name.startswith(NO_DOCUMENTS) else ending, []).append(file)
    if len(kinds) != 1:
        raise InputError(
            f"{path}: a folder with files of {' and '.join(kinds) or 'no known kind'}; expected documents alone, all "
            f"of one kind ({', '.join(FORMS)}), or corpus.jsonl and queries.jsonl (the layout of BEIR)"
        )
    return next(iter(kinds.values()))


def judged_file(name: str) -> Path | None:
    """The qrels whose queries are the topics of a folder in BEIR layout; None for other names, and without qrels."""
    folder_and_split = None if is_there(name) else _folder(name)
    if folder_and_split is None or not (folder_and_split[0] / "qrels").is_dir():
        return None
    return _qrels_file(*folder_and_split)


def kept_at(name: str) -> Path | None:
    """The file or folder that a name is read from, neither opened nor made; None where there is none, and of an id."""
    if tripclick.is_name(name):
        return next(iter(tripclick.folders()), None)
    name = name.removeprefix(reqa.MADE_FROM)
    for text in (name, name.rpartition(":")[0]):
        paths = [Path(text).expanduser()]
        if text.startswith(COLLECTIONS) or text in reqa.NAMES:
            paths.append(collections_home() / text.removeprefix(COLLECTIONS))
        for path in paths if text else ():
            if os.path.exists(path):
                return path
    return None


def _folder(name: str) -> tuple[Path, str] | None:
    """The folder in BEIR layout that a name stands for, and the split asked for ("" = test, or the only one)."""
    plain, _, split = name.rpartition(":")
    if name.startswith(reqa.MADE_FROM):
        files, _, last = (given := name.removeprefix(reqa.MADE_FROM)).rpartition(":")
        files, asked = (files, last) if splits.is_split(last) else (given, "")
        kept = files.startswith(COLLECTIONS) and not Path(files).exists()
        return reqa.folder_of(_kept(files) if kept else Path(files).expanduser()), asked
    for text, wanted in ((name, ""), (plain, split)):
        folder = Path(text).expanduser()
        if text.startswith(COLLECTIONS) and not folder.is_dir():
            folder = _kept(text)
        if text in reqa.NAMES:
            return reqa.folder(text), wanted
        if text and folder.is_dir():
            if any(_plain_or_gz(folder / file) for file in FILES.values()) or (folder / "qrels").is_dir():
                return folder, wanted
            if "/" in text or text.startswith("."):
                raise InputError(
                    f"{text}: a folder without corpus.jsonl and queries.jsonl; expected the layout of BEIR"
                )
    return None


def _of_files(name: str, folder: Path) -> bool:
    """Whether a folder is named by a path, and not one in BEIR layout: its files are documents."""
    of_beir = any(_plain_or_gz(folder / file) for file in FILES.values()) or (folder / "qrels").is_dir()
    return not of_beir and ("/" in name or name.startswith((".", "~")))


def _kept(name: str) -> Path:
    """The folder that `collections/NAME` or `collections/NAME:SPLIT` stands for."""
    folder = collections_home() / name.removeprefix(COLLECTIONS)
    plain = folder.with_name(folder.name.partition(":")[0])
    if not plain.is_dir():
        raise UnavailableError(
            f"{name}: no folder {plain}; put corpus.jsonl, queries.jsonl and qrels/test.tsv there (the layout of "
            "BEIR), or set RNNRERANKER_COLLECTIONS to the folder that holds it"
        )
    return folder


def _qrels_file(folder: Path, split: str) -> Path:
    files = {path.name.split(".")[0]: path for path in sorted((folder / "qrels").glob("*.tsv*"))}
    if splits.is_split(split) and split not in files:
        queries = _plain_or_gz(folder / FILES["topics"])
        if queries is None:
            raise InputError(f"{folder}:{split}: no {FILES['topics']} in this folder; expected the layout of BEIR")
        return splits.qrels_of(split, _qrels_file(folder, ""), queries)
    if split:
        if split not in files:
            raise InputError(f"{folder}:{split}: no qrels/{split}.tsv; splits here: {', '.join(files) or 'none'}")
        return files[split]
    if "test" in files:
        return files["test"]
    if len(files) == 1:
        return next(iter(files.values()))
    if not files:
        raise InputError(f"{folder / 'qrels'}: no qrels here; expected test.tsv or another .tsv, in the layout of BEIR")
    raise InputError(f"{folder}: splits {', '.join(files)} and no test; name one, as {folder}:{next(iter(files))}")


def _plain_or_gz(path: Path) -> Path | None:
    return next((file for file in (path, path.with_name(path.name + ".gz")) if file.is_file()), None)
