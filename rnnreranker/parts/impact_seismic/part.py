"""Seismic's index of the weights that an index has, for approximate search."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import write_json
from rnnreranker.base.process.phases import phase
from rnnreranker.parts.base import Part
from rnnreranker.parts.impact_lucene.part import opened
from rnnreranker.parts.impact_seismic.seismic import ABOUT, PART, check_seismic, write_seismic


class ImpactSeismicPart(Part):
    """A folder `impact-seismic`, made once the impacts stand in the index; its bytes differ from time to time."""

    name: ClassVar[str] = PART
    made_of: ClassVar[tuple[str, ...]] = ("impact",)
    automatic: ClassVar[bool] = False
    rank: ClassVar[int] = 61
    packages: ClassVar[tuple[str, ...]] = ("pyseismic-lsr",)

    @classmethod
    def stands(cls, index: Path, params: Any = None) -> bool:
        """As `has_seismic`."""
        return cls.at(index) is not None if params is None else has_seismic(index)

    def check(self) -> None:
        """Import Seismic.

        Raises:
            MissingDependencyError: it is not installed.
        """
        require("seismic", "approximate search of impacts", "'rnnreranker[seismic]'")

    def start(self, work: Path, threads: int | None) -> None:
        """Keep the number of threads."""
        self._threads = threads

    @phase("making Seismic's index")
    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """As `write_seismic`; the fingerprint of the impacts."""
        source = opened(corpus.parent)
        (folder / PART).mkdir()
        write_seismic(source, folder / PART, self._threads or cores())
        write_json(folder / PART / ABOUT, {"impacts": source.fingerprint})
        return {"impacts": source.fingerprint}


def has_seismic(index: Path) -> bool:
    """Whether an index has Seismic's index of its impacts that can be used."""
    try:
        check_seismic(opened(index))
    except InputError:
        return False
    return True
