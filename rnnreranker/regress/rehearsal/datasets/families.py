"""The families of miniatures, and the writing of those that a plan reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from rnnreranker.base.errors import InputError
from rnnreranker.data.document import Document
from rnnreranker.regress.rehearsal.datasets import (
    beir,
    cranfield,
    msmarco_document_v2,
    msmarco_passage,
    msmarco_passage_v2,
    reqa,
    tripclick,
)
from rnnreranker.regress.rehearsal.source import Source


class Family(Protocol):
    """What a module of this folder has: names that are read together, as one download or more."""

    @property
    def NAME(self) -> str:
        """As messages name it."""

    def holds(self, name: str) -> bool:
        """Whether a name given to a command is of this family."""

    def write(self, source: Source, folder: Path) -> dict[str, str]:
        """Write it under `folder`, but for what is there, and say which environment variables name it."""


class Collection(Family, Protocol):
    """A family whose documents an index can be made of without its files."""

    def documents(self, source: Source) -> Iterator[Document]:
        """Its documents, as `load_documents` reads them from what `write` wrote."""


COLLECTIONS: tuple[Collection, ...] = (msmarco_passage, msmarco_passage_v2, msmarco_document_v2, tripclick)
FAMILIES: tuple[Family, ...] = (*COLLECTIONS, *reqa.FAMILIES, *beir.FAMILIES, cranfield)


Kind = TypeVar("Kind", bound=Family)


def write_datasets(source: Source, folder: Path, wanted: Iterable[str]) -> dict[str, str]:
    """Write the miniatures of data sets under `folder`; files that are there are taken as they are.

    Args:
        source: what they are made of.
        folder: the current directory of what reads them, so that files with relative names are in it.
        wanted: data sets and files, as steps of a plan name them.

    Returns:
        Environment variables that lead ir_datasets and this package there.

    Raises:
        InputError: a name that no family holds.
    """
    variables: dict[str, str] = {}
    for family in {one.NAME: one for one in (_family(name, FAMILIES) for name in wanted)}.values():
        variables |= family.write(source, folder)
    return variables


def documents_of(source: Source, name: str) -> Iterator[Document]:
    """The documents of the miniature of a data set, without files: what an index of it is made of.

    Raises:
        InputError: a name that no family holds.
    """
    return _family(name, COLLECTIONS).documents(source)


def _family(name: str, families: Sequence[Kind]) -> Kind:
    for family in families:
        if family.holds(name):
            return family
    known = ", ".join(one.NAME for one in families)
    raise InputError(f"{name}: no miniature of this data set; expected one of {known}: leave out what reads it")
