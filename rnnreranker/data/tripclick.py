"""TripClick: health queries with relevance from clicks, from the release that its owner hands out on request.

Names: `tripclick` (documents); `tripclick-GROUP[-SPLIT]` (topics) with head, torso or tail and train, val or test, by
default test; `tripclick-GROUP[-SPLIT[-KIND]]` (qrels) with raw (clicked or not), by default, or dctr (grades 0-3;
head only). Ids of ir_datasets (`tripclick/val/head`) read its own copy.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rnnreranker.base.errors import InputError, UnavailableError

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
    path = home() / part
    if match and part != "documents":
        kind = f"{match[3] or 'raw'}." if part == "qrels" else ""
        path /= f"{part}.{kind}{match[1]}.{match[2] or 'test'}.txt"
    if path.exists():
        return path
    if part == "documents" and (_irds_folder() / "benchmark.tar.gz").exists():
        return None
    raise UnavailableError(
        f"{name}: the {part} are not here; looked for {path}; ask for the TripClick IR Benchmark at "
        "https://tripdatabase.github.io/tripclick (an agreement is signed), then unpack benchmark.tar.gz and set "
        f"{VARIABLE} to its folder `benchmark`, or put it into {_irds_folder()} for ids of ir_datasets"
    )


def home() -> Path:
    """The folder of the unpacked release: TRIPCLICK_HOME, or its `benchmark`; else that of ir_datasets."""
    folder = Path(os.environ.get(VARIABLE) or _irds_folder() / "topics_and_qrels").expanduser()
    return folder / "benchmark" if (folder / "benchmark").is_dir() else folder


def _irds_folder() -> Path:
    return Path(os.environ.get("IR_DATASETS_HOME", "~/.ir_datasets")).expanduser() / "tripclick"
