"""A run of candidates, and a warning when it was reranked already: its order is then no longer a first stage's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.command import say
from rnnreranker.base.files import first_line
from rnnreranker.base.method import names

if TYPE_CHECKING:
    from rnnreranker.runs import Run


def first_stage_of(given: str | Path | Run) -> Run:
    """The run of a file, see `read_first_stage`; a run that is read as it is."""
    return read_first_stage(str(given)) if isinstance(given, str | Path) else given


def read_first_stage(path: str) -> Run:
    """The run of a file, as `Run.read` gives it; warns on stderr when its tag names a reranker, as `search` writes it.

    Raises:
        InputError: as `Run.read`.
    """
    from rnnreranker.runs import Run

    run = Run.read(path)
    columns = first_line(path).split()
    tag = columns[5] if len(columns) == 6 else ""
    _, dot, name = tag.rpartition(".")
    if dot and name in names("reranker"):
        say(
            f"{Path(path).name}: was reranked by {name} already (tag {tag}); "
            "expected a first-stage run, made with --rerank none"
        )
    return run
