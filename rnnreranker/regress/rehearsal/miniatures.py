"""The miniatures of a rehearsal: everything that plans read, small, in one folder, in which their steps are taken."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rnnreranker.base.command import counted, say
from rnnreranker.base.files import fingerprint
from rnnreranker.regress.rehearsal.needs import Needs
from rnnreranker.regress.rehearsal.shorten import Miniature

ALONE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def folder_of(work: Path, size: Miniature) -> Path:
    """Where miniatures of a size are, by the code that writes them: another size or code has another folder."""
    code = fingerprint(*(path.read_bytes() for path in _writers()))
    return work / f"miniatures-{fingerprint(asdict(size), code)[:8]}"


def _writers() -> list[Path]:
    folder = Path(__file__).parent
    names = ("source.py", "prebuilt.py", "datasets/**/*.py", "models/**/*.py")
    return sorted(path for name in names for path in folder.glob(name))


def write_miniatures(needs: Needs, folder: Path, size: Miniature) -> dict[str, str]:
    """Write what is needed and not there yet; the environment in which commands read it.

    Raises:
        InputError: a data set, a model or a prebuilt index that no miniature is known of.
    """
    what = ((needs.datasets, "data set", ""), (needs.models, "model", ""), (needs.prebuilt, "index", "indexes"))
    said = [counted(len(names), noun, plural) for names, noun, plural in what if names]
    say(f"miniatures of {', '.join(said) or 'nothing'} in {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**ALONE, "RNNRERANKER_HOME": str(folder / "home")}
    if needs.datasets or needs.prebuilt:
        from rnnreranker.regress.rehearsal.source import Source

        source = Source.of(documents=size.documents, topics=size.topics)
    if needs.datasets:
        from rnnreranker.regress.rehearsal.datasets.families import write_datasets

        environment |= write_datasets(source, folder, needs.datasets)
    if needs.models:
        from rnnreranker.regress.rehearsal.models import write_models

        environment |= write_models(folder, needs.models)
    if needs.prebuilt:
        from rnnreranker.regress.rehearsal.prebuilt import write_prebuilt

        environment |= write_prebuilt(source, folder, needs.prebuilt)
    return environment


@contextlib.contextmanager
def among(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """In the block this process, and those that it starts, read the miniatures."""
    before, where = dict(os.environ), Path.cwd()
    os.environ.update(environment)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(where)
        os.environ.clear()
        os.environ.update(before)
