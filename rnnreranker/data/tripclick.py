"""TripClick: health queries with relevance from clicks, from the release that its owner hands out on request.

Names: `tripclick` (documents); `tripclick-GROUP[-SPLIT]` (topics) with head, torso or tail and train, val or test, by
default test; `tripclick-GROUP[-SPLIT[-KIND]]` (qrels) with raw (clicked or not), by default, or dctr (grades 0-3;
head only).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rnnreranker.base.errors import InputError, UnavailableError, require

NAMES = tuple(f"tripclick-{group}-{split}" for group in ("head", "torso", "tail") for split in ("train", "val", "test"))
VARIABLE = "TRIPCLICK_HOME"
_NAME = re.compile(r"tripclick-(head|torso(?!.*dctr)|tail(?!.*dctr))(?:-(train|val|test))?(?:-(raw|dctr))?")


def is_name(name: str) -> bool:
    """Whether a name is one of these; ids of ir_datasets (`tripclick/val/head`) are not."""
    return name == "tripclick" or name.startswith("tripclick-")


def path_of(name: str, part: str) -> Path | None:
    """The file of "topics" or "qrels", or the folder of "documents"; None: the archive of ir_datasets holds these.

    Raises:
        InputError: an unknown name.
        UnavailableError: no release here, or one without this part.
    """
    match = _NAME.fullmatch(name)
    if not match and (name, part) != ("tripclick", "documents"):
        raise InputError(
            f"{name}: expected tripclick, or tripclick-GROUP-SPLIT[-KIND] for topics and qrels, as in "
            "tripclick-head-val-dctr (dctr of head only)"
        )
    relative = part
    if match and part != "documents":
        kind = f"{match[3] or 'raw'}." if part == "qrels" else ""
        relative = f"{part}/{part}.{kind}{match[1]}.{match[2] or 'test'}.txt"
    if not _in_releases(relative) and (_irds_folder() / "benchmark.tar.gz").exists():
        if part == "documents":
            return None
        ir_datasets = require("ir_datasets", "TripClick's archive", "ir_datasets")
        next(iter(ir_datasets.load("tripclick/test/head").queries_iter()))  # unpacks topics and qrels
    if path := _in_releases(relative):
        return path
    tried = " and ".join(str(folder / relative) for folder in folders()) or "no folder"
    raise UnavailableError(f"{name}: the {part} are not here; looked for {tried}; {how()}")


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
    if named := os.environ.get(VARIABLE):
        home = Path(named).expanduser()
        candidates = [home / "benchmark", home, *candidates]
    return [folder for folder in candidates if folder.is_dir()]


def _in_releases(relative: str) -> Path | None:
    return next((folder / relative for folder in folders() if (folder / relative).exists()), None)


def _irds_folder() -> Path:
    return Path(os.environ.get("IR_DATASETS_HOME", "~/.ir_datasets")).expanduser() / "tripclick"
