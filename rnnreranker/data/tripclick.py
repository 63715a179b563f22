"""TripClick: health queries with relevance from clicks, from the release that its owner hands out on request.

Names: `tripclick` (documents); `tripclick-GROUP[-SPLIT]` (topics) with head, torso or tail and train, val or test, by
default test; `tripclick-GROUP[-SPLIT[-KIND]]` (qrels) with raw (clicked or not), by default, or dctr (grades 0-3;
head only).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from rnnreranker.base.errors import InputError, UnavailableError, require

GROUPS = ("head", "torso", "tail")
SPLITS = ("train", "val", "test")
KINDS = ("raw", "dctr")
NAMES = tuple(f"tripclick-{group}-{split}" for group in GROUPS for split in SPLITS)
VARIABLE = "TRIPCLICK_HOME"
_NAME = re.compile(rf"tripclick-({'|'.join(GROUPS)})(?:-({'|'.join(SPLITS)}))?(?:-({'|'.join(KINDS)}))?")


def is_name(name: str) -> bool:
    """Whether a name is one of these; ids of ir_datasets (`tripclick/val/head`) are not."""
    return name == "tripclick" or name.startswith("tripclick-")


def source(name: str, part: str) -> str:
    """The file or folder of the release that holds "documents", "topics" or "qrels", else the ir_datasets id.

    Raises:
        InputError: an unknown name.
        UnavailableError: no release here, or one without this part.
    """
    match = _NAME.fullmatch(name)
    if name != "tripclick" and not match:
        raise InputError(f"{name}: expected tripclick, or tripclick-GROUP-SPLIT[-KIND] as in tripclick-head-val-dctr")
    if part == "documents":
        relative = part
    elif not match:
        raise InputError(f"tripclick: has {part} by group; expected a name as {NAMES[2]}")
    else:
        group, split, kind = match[1], match[2] or "test", match[3] or "raw"
        if part == "qrels" and kind == "dctr" and group != "head":
            raise InputError(f"{name}: DCTR grades exist for head only; expected tripclick-{group}-{split}-raw")
        of = f"{kind}." if part == "qrels" else ""
        relative = f"{part}/{part}.{of}{group}.{split}.txt"
    if not _path(relative) and (_irds_folder() / "benchmark.tar.gz").exists():
        if part == "documents":
            return "tripclick"
        ir_datasets = require("ir_datasets", "TripClick's archive", "ir_datasets")
        next(iter(ir_datasets.load("tripclick/test/head").queries_iter()))  # unpacks topics and qrels
    if path := _path(relative):
        return path
    tried = [str(folder / relative) for folder in folders()]
    missing = f"; looked for {' and '.join(tried)}" if tried else ""
    raise UnavailableError(f"{name}: the {part} are not here{missing}; {how()}")


def how() -> str:
    """How to get the release, and where to put it, in one line."""
    return (
        "ask for the TripClick IR Benchmark at https://tripdatabase.github.io/tripclick (an agreement is signed), then "
        f"unpack benchmark.tar.gz and set {VARIABLE} to its folder `benchmark`, or put benchmark.tar.gz into "
        f"{_irds_folder()}"
    )


def folders() -> list[Path]:
    """The folders of unpacked releases: TRIPCLICK_HOME (or its `benchmark`), and those of ir_datasets."""
    candidates = [_irds_folder() / "benchmark", _irds_folder() / "topics_and_qrels" / "benchmark"]
    there = [folder for folder in candidates if folder.is_dir()]
    if named := os.environ.get(VARIABLE):
        home = Path(named).expanduser()
        return [home / "benchmark" if (home / "benchmark").is_dir() else home, *there]
    return there


def holds_documents(folder: Path) -> bool:
    """Whether a folder, or its folder `documents`, holds document files of a release."""
    return any(any(path.glob("docs_grp_*.txt*")) for path in (folder, folder / "documents") if path.is_dir())


def document_files(folder: Path) -> Iterator[Path]:
    """The document files of a release by number: docs_grp_2.txt before docs_grp_10.txt."""
    files = [path for path in folder.rglob("docs_grp_*.txt*") if path.name.endswith((".txt", ".txt.gz"))]
    if not files:
        raise InputError(f"{folder}: no docs_grp_*.txt here; expected the folder `documents` of the TripClick release")
    yield from sorted(files, key=lambda path: ([int(digits) for digits in re.findall(r"\d+", path.name)], str(path)))


def _path(relative: str) -> str:
    """The path in the first release that has it, or ""."""
    return next((str(folder / relative) for folder in folders() if (folder / relative).exists()), "")


def _irds_folder() -> Path:
    return Path(os.environ.get("IR_DATASETS_HOME", "~/.ir_datasets")).expanduser() / "tripclick"
