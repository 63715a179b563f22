"""Local data sets by name: folders in BEIR layout, TripClick's release, ReQA sets made from downloaded files.

A folder in BEIR layout holds `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`, plain or .gz. `FOLDER` is its
split `test` (or its only one), `FOLDER:SPLIT` another, see also `splits`. `collections/NAME` is a folder in
`collections_home`, `reqa:FILE` the ReQA set made from a file or folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.data import reqa, splits, tripclick
from rnnreranker.data.names import COLLECTIONS, collections_home, is_there
from rnnreranker.data.records import FORMS

NO_DOCUMENTS = ("queries", "query", "topics", "qrels")  # beginnings of the names of other files
FILES = {"documents": "corpus.jsonl", "topics": "queries.jsonl"}


def source(name: str, part: str) -> str:
    """The file, folder of documents or ir_datasets id that holds "documents", "topics" or "qrels"; else the name.

    Raises:
        InputError: a folder in BEIR layout without this part or split.
        UnavailableError: a data set that is not here.
    """
    if not name.strip():
        raise InputError(f"{part}: an empty name; expected a file, a folder or the name of a data set")
    if is_there(name):
        return name
    if tripclick.is_name(name):
        return tripclick.source(name, part)
    folder = Path(name).expanduser()
    of_files = ("/" in name or name.startswith((".", "~"))) and not _in_beir_layout(folder)
    if part == "documents" and folder.is_dir() and (of_files or tripclick.holds_documents(folder)):
        return str(folder)
    folder_and_split = _folder(name)
    if folder_and_split is None:
        return name
    folder, split = folder_and_split
    if part == "qrels":
        return str(_qrels_file(folder, split))
    return str(_file(folder, part, name))


def document_files(path: Path) -> list[Path]:
    """The files of documents of a path: itself, or those of a folder in the order of their names.

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
    """The qrels whose queries are the topics of a folder in BEIR layout; None without such."""
    folder_and_split = None if is_there(name) else _folder(name)
    if folder_and_split is None or not (folder_and_split[0] / "qrels").is_dir():
        return None
    return _qrels_file(*folder_and_split)


def kept_at(name: str) -> Path | None:
    """The existing file or folder that a name is read from, or None."""
    if tripclick.is_name(name):
        return next(iter(tripclick.folders()), None)
    name = name.removeprefix(reqa.MADE_FROM)
    for text in filter(None, (name, name.rpartition(":")[0])):
        paths = [Path(text).expanduser()]
        if text.startswith(COLLECTIONS) or text in reqa.NAMES:
            paths.append(collections_home() / text.removeprefix(COLLECTIONS))
        if there := next(filter(os.path.exists, paths), None):
            return there
    return None


def _folder(name: str) -> tuple[Path, str] | None:
    """The folder in BEIR layout that a name means, and the split asked for ("" = test, or the only one)."""
    if name.startswith(reqa.MADE_FROM):
        files, _, split = (given := name.removeprefix(reqa.MADE_FROM)).rpartition(":")
        files, split = (files, split) if splits.is_split(split) else (given, "")
        kept = files.startswith(COLLECTIONS) and not Path(files).exists()
        return reqa.folder_of(_kept(files) if kept else Path(files).expanduser()), split
    for text, split in ((name, ""), name.rpartition(":")[::2]):
        if text in reqa.NAMES:
            return reqa.folder(text), split
        folder = Path(text).expanduser()
        if text.startswith(COLLECTIONS) and not folder.is_dir():
            folder = _kept(text)
        if text and folder.is_dir():
            if _in_beir_layout(folder):
                return folder, split
            if "/" in text or text.startswith("."):
                raise InputError(
                    f"{text}: a folder without corpus.jsonl and queries.jsonl; expected the layout of BEIR"
                )
    return None


def _in_beir_layout(folder: Path) -> bool:
    return (folder / "qrels").is_dir() or any(_plain_or_gz(folder / file) for file in FILES.values())


def _kept(name: str) -> Path:
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
    if split in files:
        return files[split]
    if splits.is_split(split):
        return splits.qrels_of(split, _qrels_file(folder, ""), _file(folder, "topics", f"{folder}:{split}"))
    if split:
        raise InputError(f"{folder}:{split}: no qrels/{split}.tsv; splits here: {', '.join(files) or 'none'}")
    if not files:
        raise InputError(f"{folder / 'qrels'}: no qrels here; expected test.tsv or another .tsv, in the layout of BEIR")
    if "test" not in files and len(files) > 1:
        raise InputError(f"{folder}: splits {', '.join(files)} and no test; name one, as {folder}:{next(iter(files))}")
    return files.get("test", next(iter(files.values())))


def _file(folder: Path, part: str, name: str) -> Path:
    if file := _plain_or_gz(folder / FILES[part]):
        return file
    raise InputError(f"{name}: no {FILES[part]} in this folder; expected the layout of BEIR")


def _plain_or_gz(path: Path) -> Path | None:
    return next((file for file in (path, path.with_name(path.name + ".gz")) if file.is_file()), None)
