"""`open_index` and `build_index`: an index in Python, and what `--index NAME|PATH` means."""

from __future__ import annotations

import contextlib
import difflib
import io
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.command import phase, say
from rnnreranker.base.device import EXACT, Devices
from rnnreranker.base.errors import InputError, UnavailableError, argument, path_of, refuse
from rnnreranker.base.files import DESCRIPTION, DOCIDS, cache_home, check_files
from rnnreranker.base.java import prebuilt_index_names, start_java
from rnnreranker.base.method import RNN, Form, names
from rnnreranker.base.settings import check_names
from rnnreranker.data import pydoc
from rnnreranker.data.fields import TITLE_AND_TEXT, asked_fields, fields_of
from rnnreranker.data.names import BUILT_IN
from rnnreranker.encode.params import EncoderParams
from rnnreranker.parts.base import describe, givers, part, parts, parts_at
from rnnreranker.parts.texts import FOLDER

if TYPE_CHECKING:
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.postings.source import TermSource
    from rnnreranker.parts.tokens.part import TokenSource
    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.runs import Run

MAKE = "python -m rnnreranker.index"
BUILT_IN_PARTS = ("dense", "bm25")  # of a built-in collection, where nothing asks for others


@dataclass(frozen=True)
class Index:
    """An index, its parts, and the search of the command.

    Attributes:
        name: the name that opened it.
        folders: part → path, of the parts that it has.
        settings: the content of rnnreranker.json, or empty.

    >>> Index("my-index").parts
    ()
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
        own = [(name, self.folders[name]) for name in names("part") if name in self.folders][:1]
        beside = [at.parent for name, at in own if at.name == (part(name).folder or name)]  # of a part in a folder
        return next((at for at in (*(at for _, at in own), *beside) if (at / FOLDER).is_dir()), None)

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The fields of documents in its texts; None without a description. InputError: something else than fields."""
        return fields_of("", self.settings.get("inputs", {}).get("fields", TITLE_AND_TEXT)) if self.settings else None

    def has(self, need: str) -> bool:
        """Whether a part of the index fills a need; True for needs that no part fills."""
        return givers().get(need, "") in ("", *self.folders)

    def described(self, name: str) -> dict[str, Any]:
        return self.settings.get("parts", {}).get(name, {})

    def given(self, need: str) -> Any:
        """The opened part that fills a need.

        Raises:
            InputError: no such part, or one that does not match its description or cannot be used.
        """
        name = givers()[need]
        if name not in self._opened:
            if name not in self.folders:
                raise InputError(f"{self.name}: no {need} in this index; add them with index --parts {name}")
            at = self.folders[name]
            folder = at if (at / DESCRIPTION).is_file() else at.parent
            check_files(folder, name)
            was, now = (
                [one.get(to, {}).get(its) for to, its in (("parts", name), ("files", name), ("files", DOCIDS))]
                for one in (self.settings, describe(folder))
            )
            if was != now and folder.absolute() == Path(self.name).absolute():  # bm25 may be of another index
                raise InputError(
                    f"{folder}: its {name} or documents were made again since it was opened; open it again"
                )
            self._opened[name] = part(name).open(at, self.described(name))
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
        return self.given("vectors")

    @property
    def graph(self) -> NeighbourGraph:
        return self.given("neighbours")

    @property
    def token_vectors(self) -> TokenSource:
        return self.given("tokens")

    @property
    def term_source(self) -> TermSource:
        return self.given("terms")

    @property
    def encoder(self) -> dict[str, Any]:
        """The described encoder of the vectors: name and settings, or empty; InputError: another form."""
        described: dict[str, Any] = self.described("dense").get("encoder", {})
        try:
            _ = described.get("name", "") + "", EncoderParams(**described.get("settings", {}))
        except (TypeError, AttributeError, InputError):
            raise InputError(
                f"{self.name}: rnnreranker.json does not describe an encoder as this version does; "
                f"make the index again, or give {argument('encoder')}"
            ) from None
        return described

    def search(
        self,
        topics: str | Path | Mapping[str, str],
        retrieve: Form | Sequence[Form] = "auto",
        rerank: Form | Sequence[Form] | None = RNN,
        hits: int = 1000,
        device: str | None = None,
        **others: Any,
    ) -> Run:
        """Retrieve and rerank, as `python -m rnnreranker.search`; a run with the scores of the command's file.

        Args:
            topics: a name, a file, {qid: text}, or the text of one query, which gets the id `query`.
            retrieve, rerank, hits, device, others: as in `SearchRequest`.

        Raises:
            InputError: all visible faults at once.
            UnavailableError, MissingDependencyError: an encoder or Java is missing here.
        """
        from rnnreranker import search_index  # by its public name: it is in a folder that builds on this one

        return search_index(self, topics, retrieve=retrieve, rerank=rerank, hits=hits, device=device, **others)

    def rerank(
        self,
        run: str | Path | Run,
        rerank: Form | Sequence[Form] = RNN,
        topics: str | Path | Mapping[str, str] | None = None,
        **others: Any,
    ) -> Run:
        """Rerank the candidates of a Run or a file, as `python -m rnnreranker.search --run`; errors as `search`.

        topics: as in `search`, None if no method reads texts; rerank, others: as in `SearchRequest`.
        """
        if run is None:
            raise InputError("run: got None; expected a Run or its file")
        from rnnreranker import search_index

        return search_index(self, topics, run=run, rerank=rerank, **others)


@phase("opening the index")
def open_index(name: str | Path | Index, bm25: str | None = None, *, needs: Collection[str] = ()) -> Index:
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
    if isinstance(name, Index):
        index = name
    else:
        index = (
            _built_in(name, needs) if isinstance(name, str) and name in BUILT_IN else _on_disk(_folder(name, "index"))
        )
    if bm25 is not None:
        index = replace(index, folders={**index.folders, "bm25": _folder(bm25, "bm25")})
    return index


def _folder(given: str | Path, what: str) -> Path:
    """The path of an index, perhaps a prebuilt one; errors as `open_index`."""
    path, name = path_of(given, "a name, a folder or an open index", what).expanduser(), str(given)
    if not name:
        raise InputError(f"{what}: got ''; expected a name, a folder or an open index")
    if path.exists():
        return path
    if path.with_name(path.name + ".partial").is_dir():
        raise InputError(f"{name}: this index is not finished; run the command that makes it again, and it goes on")
    if "/" in name or name.startswith((".", "~")):
        raise InputError(f"{name}: no such index folder; make one with {MAKE}")
    return prebuilt_index(name)


def prebuilt_index(name: str) -> Path:
    """The folder of a prebuilt index of Pyserini, which Pyserini downloads on first use.

    Raises:
        InputError: no such name, with the nearest; UnavailableError: not in the cache, and no download.
    """
    known = prebuilt_index_names()
    if name not in known:
        near = difflib.get_close_matches(name, [*BUILT_IN, *known], cutoff=0.7)
        hint = f"did you mean {' or '.join(near)}?" if near else f"make one with {MAKE}"
        raise InputError(f"{name}: no such folder or file, and no prebuilt index of Pyserini; {hint}")
    start_java()  # Pyserini's tables of indexes need it
    from pyserini.util import download_prebuilt_index

    try:
        with contextlib.nullcontext() if sys.stderr.isatty() else contextlib.redirect_stderr(io.StringIO()):
            return Path(download_prebuilt_index(name, verbose=False))  # its progress bar is for a terminal
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"{name}: this prebuilt index is not in the cache and cannot be downloaded ({type(error).__name__}: "
            "no network?); run where there is internet, or give the path of a folder"
        ) from None


def _on_disk(path: Path) -> Index:
    if path.is_file() and path.suffix != ".npy" and path.name != "index":
        raise InputError(
            f"{path}: a file that is no index; expected a folder, or a .npy matrix with its ids beside it; "
            f"of documents make one with {MAKE} --documents {path}"
        )
    there, described = parts_at(path), describe(path)
    if lost := [one for one in described.get("parts", {}) if one in names("part") and one not in there]:
        raise InputError(
            f"{path}: this copy of an index is not complete, {' and '.join(lost)} missing; copy it again, or give "
            f"{MAKE} --documents {described.get('documents') or 'DOCUMENTS'} --output {path} --parts {','.join(lost)}"
        )
    if not there:
        kept = " or ".join(f"`{one.folder or part}`" for part, one in parts().items() if one.gives and not one.made_of)
        raise InputError(
            f"{path}: no index in this folder; expected `index` and `docid` (Faiss), `vectors.npy` and `docid`, "
            f"a Lucene index, {kept}; make one with {MAKE}"
        )
    return Index(str(path), there, described)


def _built_in(name: str, needs: Collection[str]) -> Index:
    from rnnreranker.index.build import building
    from rnnreranker.index.make import make_index, obstacles, said
    from rnnreranker.index.request import IndexRequest

    path, first = cache_home() / "indexes" / f"{name}-{pydoc.fingerprint()}", BUILT_IN_PARTS[0]
    there, lost = describe(path).get("parts", {}), dict[str, str]()
    wanted = sorted({givers()[need] for need in needs if need in givers()})
    if not wanted and first not in there:
        with building(path):  # it can be written: said before libraries are imported, to see what can be made
            lost = obstacles(IndexRequest(name, BUILT_IN_PARTS))
        wanted = [part for part in BUILT_IN_PARTS if part not in lost]
    if any(part(one).made_of for one in wanted):
        wanted.append(first)  # what others are made of
    if not set(wanted) <= set(there):
        without = f", without {said(lost)}" if lost else ""
        say(f"making the {name} index in {path}{without} (once; a minute or two on two cores)")
        make_index(IndexRequest(name, sorted({*wanted}, key=lambda one: (one != first, one))), path)
    return _on_disk(path)


def build_index(
    documents: str | Path | Iterable[tuple[str, str]] | Iterable[tuple[str, str, Any]] | Mapping[str, Any],
    output: str | Path,
    parts: Form | Sequence[Form] = ("dense", "bm25"),
    encoder: Form | Path | None = None,
    device: str | None = None,
    *,
    compute_dtype: str = EXACT,
    threads: int | None = None,
    overwrite: bool = False,
    fields: str | Sequence[str] | None = None,
    from_index: str | Path | None = None,
    backend: str = "threads",
    address: str | None = None,
    **settings: Any,
) -> Index:
    """Build an index of documents in a folder, and open it; resumes an interrupted build and keeps existing parts.

    Args:
        documents: a name, a file, pairs (docid, text), triples with a vector, (d,) floats, {docid: text}, or records or
            a data frame with id, text and perhaps title and vector.
        parts: in their written form, as "dense", "neighbours:k=32"; `python -m rnnreranker methods` lists them.
        encoder: of the vectors, a name, a folder or `name:pooling=cls,…`; None = minilm, or vectors of the documents.
        device, compute_dtype: of the encoder, as in `devices_of`.
        threads: None = one per core; the index does not depend on it.
        overwrite: replace the whole index with these parts, also an index of other documents.
        fields, from_index, backend, address: as in `IndexRequest`; settings: of parts: dtype, impact_encoder,
            token_encoder.

    Raises:
        InputError: no documents, a repeated docid, unknown arguments, an index of other documents in the folder.
        UnavailableError: a BM25 part without Java 21 or newer, a missing encoder.
    """
    from rnnreranker.data.documents import GivenDocuments
    from rnnreranker.index.make import make_index
    from rnnreranker.index.request import IndexRequest, settings_with_flags

    check_names(settings, [hint.flag for _, hint in settings_with_flags()])
    folder = path_of(output, "the name of a folder to write", "output")
    refuse(
        (not str(output).strip(), f"output: got {output!r}; expected the name of a folder to write"),
        (
            isinstance(documents, str) and not documents,
            "documents: an empty name; expected a file, a folder or the name of a data set",
        ),
    )
    if isinstance(documents, str | Path):
        path_of(documents, "a name, a file or documents", "documents")
        given: Any = str(documents)
    else:
        given = GivenDocuments.of(documents, *filter(None, [asked_fields("documents", fields)]))
    own = str(encoder) if isinstance(encoder, Path) else encoder
    request = IndexRequest(
        given,
        parts,
        {"encoder": own, **settings},
        fields,
        from_index,
        backend,
        address,
        threads,
        overwrite,
        device=device,
        compute_dtype=compute_dtype,
    )
    return open_index(make_index(request, folder).path)
