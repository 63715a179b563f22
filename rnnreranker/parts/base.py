"""What a part of an index is: one representation of all documents, made while they stream by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.json_files import read_json
from rnnreranker.data.document import Document

BLOCK = 1024  # documents that pass through together


class Part(ABC):
    """Makes one representation of the documents; a subclass in a file of its own is a part.

    Attributes:
        name: in `--parts` and in rnnreranker.json.
        packages: whose versions the description keeps.
        marks: what, besides the documents, the part depends on; plain values, for the fingerprint of the index.
        reused: documents that an earlier, interrupted build had done.
    """

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()
    marks: tuple[Any, ...] = ()
    reused: int = 0

    def check(self) -> None:  # noqa: B027  not every part needs something
        """Fail before hours of work where something is lacking, as Java."""

    def extend(self, index: Path) -> None:  # noqa: B027  not every part can
        """Take what an index has of this part for the documents that stand first, in its order, where it is as good.

        Raises:
            InputError: it was made by something else than this part makes.
        """

    def start(self, work: Path, threads: int | None) -> None:  # noqa: B027  not every part works block by block
        """Begin; `work` is a folder for what an interrupted build goes on from."""

    def add(self, documents: Sequence[Document]) -> None:  # noqa: B027  nor reads the stream
        """Take the next block of documents."""

    @abstractmethod
    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write the files of the part into `folder`; what rnnreranker.json says about it.

        Args:
            folder: of the index.
            corpus: the folder with the texts of all documents, see `texts.py`.
            count: documents.
        """


def check_encoder(index: Path, part: str, mark: str) -> None:
    """Look that a part of an index was made by the encoder of a fingerprint.

    Raises:
        InputError: by another one.
    """
    described = read_json(index / "rnnreranker.json", repair="make the index again")["parts"][part]["encoder"]
    if described.get("fingerprint") != mark:
        raise InputError(
            f"{index}: its part {part} was made by {described.get('name')} as it was then, which is another encoder "
            "now; make the index again"
        )
