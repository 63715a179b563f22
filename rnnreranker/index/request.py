"""The request for an index: documents and parts with their settings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rnnreranker.base.device import ComputesOnDevices
from rnnreranker.base.errors import InputError, argument, refuse
from rnnreranker.base.files import file_digest, files_digest
from rnnreranker.base.jobs import BACKENDS, check_backend
from rnnreranker.base.method import Chosen, Form, as_list, choose, names
from rnnreranker.base.settings import Hint, Request, Written, hints_of, read_listed, setting
from rnnreranker.data import local, pydoc
from rnnreranker.data.document import Document
from rnnreranker.data.documents import GivenDocuments, load_documents
from rnnreranker.data.fields import CHOICES, TITLE_AND_TEXT, asked_fields, fields_of
from rnnreranker.parts.base import Part, part, parts
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.parts.vectors.part import OWN, documents_of_vectors

AUTO = "auto"
USUAL = "dense"  # where no part is asked for


@dataclass(frozen=True)
class IndexRequest(ComputesOnDevices, Request):
    """Documents, and the parts of their index.

    Args:
        documents: as in `load_documents`, a .npy matrix with ids, or given ones; "" = those of the index.
        parts: in their written form, `dense,neighbours:k=32` or a list; `auto` = the usual ones that can be made here.
        settings: of parts, by the names of `settings_with_flags`; None = not given.
        fields: as in `load_documents`, or `title,text`.
        from_index: an index of the same documents, whose encoded parts are reused.
        backend, address: one of BACKENDS, and the scheduler of its cluster; None starts one here.
        device, compute_dtype: of encoders, as in `devices_of`.
        threads: None = one per core; the index does not depend on it.
        overwrite: replace the whole index, also one of other inputs; without documents, the parts alone.

    Raises:
        InputError: arguments of other types, no parts, unknown ones or settings; a device that is not here.
    """

    documents: str | GivenDocuments = setting(
        "",
        "ir_datasets id, file or folder of texts, .npy matrix, `pydoc`; none: parts made of those in --output",
        metavar="NAME|FILE",
    )
    parts: Form | Sequence[Form] = setting(
        USUAL,
        f", NAME:KEY=VALUE,…; {AUTO}: those usual ones that can be made here",
        method="part",
        metavar="NAMES",
    )
    settings: Mapping[str, Any] = field(default_factory=dict)
    fields: str | Sequence[str] | None = setting(
        None, "of --documents (default: title,text; of ReQA text)", one_of=lambda: [*CHOICES], metavar="NAMES"
    )
    from_index: str | Path | None = setting(
        None, "index of the same documents, whose vectors, weights and tokens are taken", metavar="DIR"
    )
    backend: str = setting("threads", "who makes blocks", one_of=lambda: [*BACKENDS], metavar="NAME")
    address: str | None = setting(None, "of dask or ray (default: start one here)")
    threads: int | None = setting(None, "default: one per core", at_least=1)
    overwrite: bool = setting(False, "replace the whole index; without --documents its --parts alone")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.chosen, self.devices, self.own_fields
        check_backend(self.backend, self.address)

    @cached_property
    def forms(self) -> dict[str, Written]:
        """The parts in their written form with their settings, by name.

        Raises:
            InputError: no parts, or one twice; a setting of a part that is not requested, or one given twice.
        """
        given: Any = self.parts
        if given == AUTO:
            usual = (name for name, one in parts().items() if one.automatic)
            given = [name for name in usual if not self.without_texts or name == USUAL or part(name).made_of]
        read = list(read_listed(given)) if isinstance(given, str) else [Written.read(one) for one in as_list(given)]
        if not read:
            raise InputError(f"no parts of an index to make; expected some of {', '.join(names('part'))}")
        forms = {one.name: one for one in read}
        if len(forms) < len(read):
            raise InputError(f"{argument('parts', ','.join(map(str, read)))}: a part twice; give each once")
        for kind, hint in settings_with_flags():
            if (value := self.settings.get(hint.flag)) is None:
                continue
            if kind.name not in forms:
                said = f"{argument(hint.flag, value)}: of {kind.name}; add {kind.name} to {argument('parts')}"
                raise InputError(said)
            forms[kind.name] = forms[kind.name].beside({hint.field.name: value}, argument("parts"))
        return forms

    @cached_property
    def chosen(self) -> dict[str, Chosen]:
        """The parts with their settings, by name."""
        return {name: choose("part", form, "parts") for name, form in self.forms.items()}

    @cached_property
    def own_fields(self) -> tuple[str, ...] | None:
        return asked_fields(str(self.documents), self.fields)

    @property
    def taken(self) -> Path | None:
        return None if self.from_index is None else Path(self.from_index).expanduser()

    @property
    def without_texts(self) -> bool:
        return isinstance(self.documents, str) and self.documents.endswith(".npy")

    def read(self) -> Iterator[Document]:
        """The documents.

        Raises:
            InputError, UnavailableError: as `load_documents`; at once for an unknown name.
        """
        documents: Iterator[Document]
        if isinstance(self.documents, GivenDocuments):
            documents = iter(self.documents.documents)
        elif self.without_texts:
            documents = documents_of_vectors(Path(self.documents))
        else:
            documents = load_documents(self.documents, self.own_fields)
        return itertools.chain(list(itertools.islice(documents, 1)), documents)

    def with_own_vectors(self) -> IndexRequest:
        """The same with a dense part of the documents' own vectors, if they have vectors.

        Raises:
            InputError: an encoder beside such vectors, a part of texts without texts.
            UnavailableError: as `read`.
        """
        first = None
        if not isinstance(self.documents, str) or local.files_of(self.documents, "documents"):
            first = next(self.read(), None)
        forms = dict(self.forms)
        if first is None or first.vector is None or not (self.without_texts or "dense" in forms):
            return self
        shown, given = self.shown("documents"), dict(forms.setdefault("dense", Written("dense")).params)
        of_texts = [name for name in forms if name != "dense" and not part(name).made_of and self.without_texts]
        refuse(
            (of_texts, f"{argument('parts', ','.join(of_texts))}: made of texts, and {shown} has vectors alone"),
            (
                given.pop("encoder", OWN) != OWN or {*given} - {"dtype"},
                f"{argument('encoder')}: {shown} has vectors, which are used; give the encoder to search, for queries",
            ),
        )
        own = {"dense": Written("dense", {**given, "encoder": OWN})}
        return replace(self, parts=list((own | forms | own).values()), settings={})

    def inputs(self) -> dict[str, Any]:
        """What distinguishes indexes, computed without loading documents or models."""
        marks: dict[str, Any] = {"documents": documents_mark(self.documents), "dense": None}  # null without vectors
        if (fields := fields_of(str(self.documents), self.own_fields)) != TITLE_AND_TEXT:  # those there always were
            marks["fields"] = list(fields)
        for name, one in self.chosen.items():
            if (mark := part(name).inputs(one.params)) is not None:
                marks[name] = mark
        return marks


def documents_mark(documents: str | GivenDocuments) -> str:
    """A fingerprint of the content of files, or the name of an ir_datasets id."""
    if isinstance(documents, GivenDocuments):
        return documents.fingerprint
    if documents == "pydoc":
        return pydoc.fingerprint()
    files = local.files_of(documents, "documents")
    if documents.endswith(".npy"):
        return open_vectors(files[0]).fingerprint
    if len(files) > 1:
        return files_digest(files, files[0].parent)[:16]
    return file_digest(files[0])[:16] if files else documents


@dataclass(frozen=True)
class FlagsRequest(Request):
    """Flags of the command that are no fields of a request."""

    append: str | None = setting(
        None,
        "in place of --documents: add these to the index in --output, and to all its parts",
        metavar="NAME|FILE",
    )
    output: str | None = setting(None, "folder for the index", metavar="DIR")


def settings_with_flags() -> Iterator[tuple[type[Part], Hint]]:
    """The settings of parts that are flags of `index` and arguments of `build_index`."""
    for one in parts().values():
        yield from ((one, hint) for hint in hints_of(one.Params).values() if hint.about["flag"])
