"""What `--index NAME|PATH` means: a folder, the built-in collection, a prebuilt index of Pyserini."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.checksums import DESCRIPTION, check_files
from rnnreranker.base.command import say
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home
from rnnreranker.base.given import path_of
from rnnreranker.base.method import names
from rnnreranker.base.process.phases import phase
from rnnreranker.base.settings import hints_of
from rnnreranker.data.fields import TITLE_AND_TEXT, fields_of
from rnnreranker.data.names import BUILT_IN
from rnnreranker.data.records import FORMS
from rnnreranker.encode.params import EncoderParams
from rnnreranker.index.prebuilt import prebuilt_index
from rnnreranker.parts.base import givers, part, parts, parts_at
from rnnreranker.parts.texts import FOLDER

if TYPE_CHECKING:
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.terms.source import TermSource
    from rnnreranker.parts.tokens.source import TokenSource
    from rnnreranker.parts.vectors import VectorSource

BUILT_IN_PARTS = ("dense", "bm25")  # of a built-in collection, where nothing asks for others
DOCUMENTS = (*(f".{ending}" for ending in FORMS), ".txt")  # endings of files that `index --documents` reads, before .gz


@dataclass(frozen=True)
class IndexOnDisk:
    """An index and its parts.

    Attributes:
        name: the name that opened it.
        folders: part → path, of the parts that it has.
        settings: the content of rnnreranker.json, or empty.
    """

    name: str
    folders: Mapping[str, Path] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(name for name in givers().values() if name in self.folders)

    @property
    def texts(self) -> Path | None:
        """The folder of the index whose texts can be read; None if it has none."""
        name = next((one for one in names("part") if one in self.folders), "")
        if not name:
            return None
        at = self.folders[name]
        if not (at / FOLDER).is_dir() and at.name == (part(name).folder or name):  # the part is a folder beside them
            at = at.parent
        return at if (at / FOLDER).is_dir() else None

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The fields of documents in its texts; None without a description. InputError: something else than fields."""
        return fields_of("", self.settings.get("inputs", {}).get("fields", TITLE_AND_TEXT)) if self.settings else None

    def has(self, need: str) -> bool:
        """Whether a part of the index fills a need; True for needs that no part fills."""
        return givers().get(need, "") in ("", *self.folders)

    def described(self, name: str) -> dict[str, Any]:
        said: dict[str, Any] = self.settings.get("parts", {}).get(name, {})
        return said

    def given(self, need: str) -> Any:
        """The opened part that fills a need.

        Raises:
            InputError: no such part, or one that does not match its description or cannot be used.
        """
        name = givers()[need]
        if name not in self._opened:
            if name not in self.folders:
                raise InputError(f"{self.name}: no {need} in this index; add them with index --parts {name}")
            kind, at = part(name), self.folders[name]
            if kind.made_of and name not in self.settings.get("parts", {name: {}}):  # of a part that was replaced
                raise InputError(
                    f"{at}: rnnreranker.json does not describe this {name}; make it again with index --parts {name}"
                )
            check_files(at if (at / DESCRIPTION).is_file() else at.parent, name)
            self._opened[name] = kind.open(at, self.described(name))
        return self._opened[name]

    def given_queries(
        self, need: str, topics: Mapping[str, str], threads: int | None = None, devices: Devices | None = None
    ) -> Any:
        """The queries as the part that fills a need compares them; errors as `given` and of its encoder."""
        giver = part(givers(queries=True)[need])
        return giver.queries(self.given(giver.gives), topics, threads, devices)

    @cached_property
    def _opened(self) -> dict[str, Any]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        folders = {part: path.absolute() for part, path in self.folders.items()}
        return {"name": self.name, "folders": folders, "settings": self.settings}

    @property
    def vectors(self) -> VectorSource:
        opened: VectorSource = self.given("vectors")
        return opened

    @property
    def graph(self) -> NeighbourGraph:
        opened: NeighbourGraph = self.given("neighbours")
        return opened

    @property
    def token_vectors(self) -> TokenSource:
        opened: TokenSource = self.given("tokens")
        return opened

    @property
    def term_source(self) -> TermSource:
        opened: TermSource = self.given("terms")
        return opened

    @property
    def encoder(self) -> dict[str, Any]:
        """The described encoder of the vectors: name and settings, or empty; InputError: another form."""
        described = self.described("dense").get("encoder", {})
        settings = described.get("settings", {}) if isinstance(described, dict) else None
        if (
            not isinstance(settings, dict)
            or not isinstance(described.get("name", ""), str)
            or not set(settings) <= set(hints_of(EncoderParams))
        ):
            raise InputError(
                f"{self.name}: rnnreranker.json does not describe an encoder as this version does; "
                f"make the index again, or give {argument('encoder')}"
            )
        return described


@phase("opening the index")
def open_index(name: str | Path | IndexOnDisk, bm25: str | None = None, *, needs: Collection[str] = ()) -> IndexOnDisk:
    """The index of a name or path; makes built-in collections on first use, downloads prebuilt indexes.

    Args:
        name: an open index; a folder of `python -m rnnreranker.index`, a Faiss or Lucene folder of Pyserini, a `.npy`
            matrix with its ids, `pydoc`, or a prebuilt index of Pyserini.
        bm25: another Lucene index (path or prebuilt name).
        needs: of methods; a built-in collection gets the parts for them, without needs the possible ones of
            `BUILT_IN_PARTS`.

    Raises:
        InputError: nothing of that name (with the nearest names), or no index in the folder.
        UnavailableError: a prebuilt index that cannot be downloaded, a BM25 index without Java.
    """
    for what, given in (("index", name), ("bm25", bm25)):
        if isinstance(given, str) and not given:
            raise InputError(f"{what}: got ''; expected a name, a folder or an open index")
    if not isinstance(name, IndexOnDisk):
        path_of(name, "a name, a folder or an open index", "index")
        name = str(name)
    if isinstance(name, IndexOnDisk):
        index = name
    elif name in BUILT_IN:
        index = _built_in(name, needs)
    elif Path(name).expanduser().exists():
        index = _on_disk(name)
    elif Path(name + ".partial").expanduser().is_dir():
        raise InputError(f"{name}: this index is not finished; run the command that makes it again, and it goes on")
    elif name.startswith((".", "/", "~")) or "/" in name:
        raise InputError(f"{name}: no such index folder; make one with python -m rnnreranker.index")
    else:
        index = _on_disk(str(prebuilt_index(name)))
    if bm25 is not None:
        lucene = path_of(bm25, "a name or a Lucene folder", "bm25")
        lucene = lucene if lucene.exists() else prebuilt_index(str(bm25))
        index = replace(index, folders={**index.folders, "bm25": lucene})
    return index


def _on_disk(name: str) -> IndexOnDisk:
    from rnnreranker.parts.base import describe

    path = Path(name).expanduser()
    looks_like_documents = f"{name}: looks like documents: make an index of them with python -m rnnreranker.index"
    if path.is_file():
        if path.name.removesuffix(".gz").endswith(DOCUMENTS):
            raise InputError(f"{looks_like_documents} --documents {name}")
        if path.suffix != ".npy" and path.name != "index":
            raise InputError(
                f"{name}: a file that is no index; expected a folder, or a .npy matrix with its ids beside it"
            )
    there, described = parts_at(path), describe(path)
    known = [one for one in described.get("parts", {}) if one in names("part")]
    if lost := [one for one in known if one not in there]:
        raise InputError(
            f"{name}: this copy of an index is not complete: rnnreranker.json lists {', '.join(known)}, but "
            f"{' and '.join(lost)} {'is' if len(lost) == 1 else 'are'} missing; copy it again, or make what is missing "
            f"with python -m rnnreranker.index --documents {described.get('documents') or 'DOCUMENTS'} --output {name} "
            f"--parts {','.join(lost)}"
        )
    if not there and any(path.glob("corpus.jsonl*")):  # a folder in BEIR layout
        raise InputError(f"{looks_like_documents} --documents {name}")
    if not there:
        kept = " or ".join(
            f"`{one.folder or known}`" for known, one in parts().items() if one.gives and not one.made_of
        )
        raise InputError(
            f"{name}: no index in this folder; expected `index` and `docid` (Faiss), `vectors.npy` and `docid`, "
            f"a Lucene index, {kept}; make one with python -m rnnreranker.index"
        )
    return IndexOnDisk(name, there, described)


def _built_in(name: str, needs: Collection[str]) -> IndexOnDisk:
    from rnnreranker.data import pydoc
    from rnnreranker.index.build import check_replaceable
    from rnnreranker.index.make import make_index, obstacles, said
    from rnnreranker.index.request import IndexRequest
    from rnnreranker.parts.base import describe

    path = cache_home() / "indexes" / f"{name}-{pydoc.fingerprint()}"
    there = describe(path).get("parts", {})
    named = {givers()[need] for need in needs if need in givers()}
    if not there or not named <= set(there):
        check_replaceable(path)  # before libraries are imported, to see what can be made
    first = BUILT_IN_PARTS[0]  # what others are made of
    lost = {} if named or first in there else obstacles(IndexRequest(name, BUILT_IN_PARTS))
    usual = [] if first in there else [part for part in BUILT_IN_PARTS if part not in lost]
    wanted = sorted(named, key=lambda one: one != first) if named else usual
    if any(part(one).made_of for one in wanted):
        wanted = list(dict.fromkeys([first, *wanted]))
    if not set(wanted) <= set(there):
        without = f", without {said(lost)}" if lost else ""
        say(f"making the {name} index in {path}{without} (once; a minute or two on two cores)")
        make_index(IndexRequest(name, wanted), path)
    return _on_disk(str(path))
