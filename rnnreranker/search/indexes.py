"""What `--index NAME|PATH` stands for: a folder on disk, the built-in collection, a prebuilt index of Pyserini."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home
from rnnreranker.base.files.checksums import check_files
from rnnreranker.base.process.phases import phase
from rnnreranker.base.settings import hints_of
from rnnreranker.data.fields import TITLE_AND_TEXT, fields_of
from rnnreranker.data.names import BUILT_IN
from rnnreranker.encode.params import EncoderParams
from rnnreranker.search.prebuilt import prebuilt_index

if TYPE_CHECKING:
    from rnnreranker.parts.impacts import ImpactSource
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.terms.source import TermSource
    from rnnreranker.parts.tokens.source import TokenSource
    from rnnreranker.parts.vectors import VectorSource

# what methods need → the part that gives it
PART_OF = {
    **{"vectors": "dense", "words": "bm25", "terms": "terms", "impacts": "impact", "tokens": "tokens"},
    "neighbours": "neighbours",
}
BUILT_IN_PARTS = ("dense", "bm25")  # of a built-in collection, where nothing asks for others
DOCUMENTS = (".jsonl", ".tsv", ".trec", ".txt")  # endings of files that `index --documents` reads, plain or .gz


@dataclass(frozen=True)
class Index:
    """An index and its parts; a part that is missing is None."""

    name: str
    dense: Path | None = None  # Faiss folder, or a folder or file with a matrix of vectors
    bm25: Path | None = None  # Lucene index
    settings: dict[str, Any] = field(default_factory=dict)  # what `index` wrote about encoder and documents
    impact: Path | None = None  # folder of an index with impacts
    tokens: Path | None = None  # folder of an index with tokens
    neighbours: Path | None = None  # folder of the nearest documents of every document
    terms: Path | None = None  # folder of an index with counted words

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that the index has."""
        return tuple(part for part in PART_OF.values() if getattr(self, part) is not None)

    @property
    def texts(self) -> Path | None:
        """The folder of the index whose texts can be read; None where it keeps none."""
        folder = self.dense or self.impact or self.tokens or self.terms or self.bm25
        if folder is not None and folder == self.bm25 and folder.name == "bm25":  # a part, beside the texts
            folder = folder.parent
        return folder if folder is not None and (folder / "corpus").is_dir() else None

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The fields of documents that its texts are of; None where nothing says what it was made of.

        Raises:
            InputError: something else than fields.
        """
        return fields_of("", self.settings.get("inputs", {}).get("fields", TITLE_AND_TEXT)) if self.settings else None

    def has(self, need: str) -> bool:
        """Whether the index has the part that gives what a method needs; what no part gives does not depend on it."""
        return need not in PART_OF or PART_OF[need] in self.parts

    @property
    def lucene(self) -> Path:
        """The folder of the BM25 part.

        Raises:
            InputError: no such part, or a folder without a Lucene index.
        """
        if self.bm25 is None:
            raise InputError(
                f"{self.name}: no BM25 index in it; make it again with --bm25, or give --bm25-index FOLDER"
            )
        if self.bm25.name == "bm25":
            check_files(self.bm25.parent, "bm25")
        if not any(self.bm25.glob("segments_*")):
            raise InputError(f"{self.bm25}: no Lucene index in this folder (no file segments_*); make it again")
        return self.bm25

    @property
    def encoder(self) -> dict[str, Any]:
        """What `index` wrote about the encoder of the vectors: name and settings; empty when it says nothing.

        Raises:
            InputError: something else than an encoder as this version describes one.
        """
        described = self.settings.get("parts", {}).get("dense", {}).get("encoder", {})
        settings = described.get("settings", {}) if isinstance(described, dict) else None
        if (
            not isinstance(settings, dict)
            or not isinstance(described.get("name", ""), str)
            or not set(settings) <= set(hints_of(EncoderParams))
        ):
            raise InputError(
                f"{self.name}: rnnreranker.json does not describe an encoder as this version does; "
                "make the index again, or give --encoder"
            )
        return described

    @cached_property
    def vectors(self) -> VectorSource:
        """The vectors of the dense part, opened on first use.

        Raises:
            InputError: no dense part, or one that cannot be used.
        """
        from rnnreranker.parts.vectors import open_vectors

        if self.dense is None:
            raise InputError(f"{self.name}: no vectors in this index; dense, hybrid and rnn need a dense index")
        return open_vectors(self.dense)

    @cached_property
    def impacts(self) -> ImpactSource:
        """The words' weights of the documents, opened on first use.

        Raises:
            InputError: no such part, or one that cannot be used.
        """
        from rnnreranker.parts.impacts import ImpactSource

        return ImpactSource(*self._described("impact", self.impact, "impacts"))

    @cached_property
    def term_source(self) -> TermSource:
        """The counted words of the documents, opened on first use.

        Raises:
            InputError: no such part, or one that cannot be used.
        """
        from rnnreranker.parts.terms.source import TermSource

        return TermSource(*self._described("terms", self.terms, "counted words"))

    @cached_property
    def token_vectors(self) -> TokenSource:
        """The vectors of the documents' tokens, opened on first use.

        Raises:
            InputError: no such part, or one that cannot be used.
        """
        from rnnreranker.parts.tokens.source import TokenSource

        return TokenSource(*self._described("tokens", self.tokens, "tokens"))

    def _described(self, part: str, folder: Path | None, what: str) -> tuple[Path, dict[str, Any]]:
        """The folder of a part, and what `index` wrote about it."""
        if folder is None:
            raise InputError(f"{self.name}: no {what} in this index; add them with index --parts {part}")
        return folder, self.settings.get("parts", {}).get(part, {})

    @cached_property
    def graph(self) -> NeighbourGraph:
        """The graph of the part `neighbours`, opened on first use; no vector is.

        Raises:
            InputError: no such part, or one that is not the one that the index describes or cannot be used.
        """
        from rnnreranker.parts.neighbours import open_neighbours

        if self.neighbours is None:
            raise InputError(f"{self.name}: no graph of neighbours in this index; add it with index --parts neighbours")
        parts = self.settings.get("parts", {"neighbours": {}})
        if "neighbours" not in parts:  # of vectors that were replaced
            raise InputError(
                f"{self.neighbours}: a graph that rnnreranker.json does not describe; make it again with "
                "index --parts neighbours"
            )
        return open_neighbours(self.neighbours, str(parts["neighbours"].get("source", "")))


@phase("opening the index")
def open_index(name: str | Path | Index, bm25: str | None = None, *, needs: Collection[str] = ()) -> Index:
    """The index of a name or path; built-in collections are indexed on first use, prebuilt ones downloaded.

    Args:
        name: an index that is open; a folder written by `python -m rnnreranker.index`, a Faiss or Lucene folder of
            Pyserini, a `.npy` matrix with its ids, `pydoc`, or the name of a prebuilt index of Pyserini.
        bm25: a Lucene index that stands elsewhere (path or prebuilt name).
        needs: of methods that the index is for; a built-in collection is given the parts that they need, or made with
            `BUILT_IN_PARTS`, as far as this machine can, where none is named.

    Raises:
        InputError: nothing of that name (with the nearest names), or no index in the folder.
        UnavailableError: a prebuilt index that cannot be downloaded, a BM25 index without Java.
    """
    name = name if isinstance(name, Index) else str(name)
    if isinstance(name, Index):
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
        lucene = Path(bm25).expanduser()
        lucene = lucene if lucene.exists() else prebuilt_index(bm25)
        index = replace(index, bm25=lucene)
    return index


def _on_disk(name: str) -> Index:
    from rnnreranker.parts.description import describe

    path = Path(name).expanduser()
    looks_like_documents = f"{name}: looks like documents: make an index of them with python -m rnnreranker.index"
    if path.is_file():
        if path.name.removesuffix(".gz").endswith(DOCUMENTS):
            raise InputError(f"{looks_like_documents} --documents {name}")
        if path.suffix != ".npy" and path.name != "index":
            raise InputError(
                f"{name}: a file that is no index; expected a folder, or a .npy matrix with its ids beside it"
            )
        return Index(name, dense=path)
    if any(path.glob("segments_*")):
        return Index(name, bm25=path)
    has_vectors = (path / "index").is_file() or any(path.glob("*.npy"))
    dense = path if has_vectors else None
    lucene = path / "bm25" if (path / "bm25").is_dir() else None
    impact = path if (path / "impacts").is_dir() else None
    tokens = path if (path / "tokens").is_dir() else None
    terms = path if (path / "terms").is_dir() else None
    nothing = not (dense or lucene or impact or tokens or terms)
    if nothing and any(path.glob("corpus.jsonl*")):  # a folder in BEIR layout
        raise InputError(f"{looks_like_documents} --documents {name}")
    if nothing:
        raise InputError(
            f"{name}: no index in this folder; expected `index` and `docid` (Faiss), `vectors.npy` and `docid`, "
            "a Lucene index, `impacts`, `tokens` or `terms`; make one with python -m rnnreranker.index"
        )
    graph = path / "neighbours" if (path / "neighbours").is_dir() else None
    return Index(name, dense, lucene, describe(path), impact, tokens, graph, terms)


def _built_in(name: str, needs: Collection[str]) -> Index:
    from rnnreranker.data import pydoc
    from rnnreranker.index.build import check_replaceable
    from rnnreranker.index.make import Recipe, make_index
    from rnnreranker.index.possible import obstacles, said
    from rnnreranker.parts.description import describe

    path = cache_home() / "indexes" / f"{name}-{pydoc.fingerprint()}"
    there = describe(path).get("parts", {})
    named = {PART_OF[need] for need in needs if need in PART_OF}
    if not there or not named <= set(there):
        check_replaceable(path)  # before libraries are imported, to see what can be made
    lost = {} if named or there else obstacles(Recipe(name, BUILT_IN_PARTS))
    usual = [] if there else [part for part in BUILT_IN_PARTS if part not in lost]
    wanted = ["dense", *sorted(named - {"dense"})] if named else usual
    if not set(wanted) <= set(there):
        without = f", without {said(lost)}" if lost else ""
        say(f"making the {name} index in {path}{without} (once; a minute or two on two cores)")
        make_index(Recipe(name, wanted), path)
    return _on_disk(str(path))
