"""The request for an index: documents and parts with their settings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from rnnreranker.data.fields import CHOICES, FIELDS, TITLE_AND_TEXT, fields_of
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
        parts: in their written form, `dense,neighbours:k=32` or a list; fields: as in `load_documents`.
        from_index: an index of the same documents, whose encoded parts are reused.
        backend, address: one of BACKENDS, and the scheduler of its cluster; None starts one here.
        device, compute_dtype: of encoders, as in `devices_of`.
        threads: None = one per core; the index does not depend on it.
        overwrite: make existing parts again, and replace an index of other inputs.

    Raises:
        InputError: arguments of other types, no parts, unknown ones or settings; a device that is not here.
    """

    documents: str | GivenDocuments = setting(
        "",
        "ir_datasets id, file or folder of texts, .npy matrix, `pydoc`; none: parts made of those in --output",
        metavar="NAME|FILE",
    )
    parts: Form | Sequence[Form] = ("dense",)
    fields: tuple[str, ...] | None = None
    from_index: Path | None = setting(
        None, "index of the same documents, whose vectors, weights and tokens are taken", metavar="DIR"
    )
    backend: str = setting("threads", "who makes blocks", one_of=lambda: [*BACKENDS], metavar="NAME")
    address: str | None = setting(None, "of dask or ray (default: start one here)")
    threads: int | None = setting(None, "default: one per core", at_least=1)
    overwrite: bool = setting(False, "replace an index of other inputs")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.chosen, self.devices
        check_backend(self.backend, self.address)

    @cached_property
    def chosen(self) -> dict[str, Chosen]:
        """The parts with their settings, by name; the last of a name counts."""
        return {one.name: one for one in (choose("part", form, "parts") for form in forms_of(self.parts))}

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
            documents = load_documents(self.documents, self.fields)
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
        forms = {one.name: one for one in forms_of(self.parts)}
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
        return replace(self, parts=list((own | forms | own).values()))

    def inputs(self) -> dict[str, Any]:
        """What distinguishes indexes, computed without loading documents or models."""
        marks: dict[str, Any] = {"documents": documents_mark(self.documents), "dense": None}  # null without vectors
        if (fields := fields_of(str(self.documents), self.fields)) != TITLE_AND_TEXT:  # those there always were
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


def forms_of(given: Form | Sequence[Form]) -> list[Written]:
    """The parts of a line or a list; InputError: none, or something else."""
    if not isinstance(given, str | Written | Iterable | None):
        raise InputError(f"{argument('parts')}: got {given!r:.60}; expected names of parts, or a list of them")
    forms = list(read_listed(given)) if isinstance(given, str) else [Written.read(one) for one in as_list(given)]
    if not forms:
        raise InputError(f"no parts of an index to make; expected some of {', '.join(names('part'))}")
    return forms


@dataclass(frozen=True)
class FlagsRequest(Request):
    """Flags of the command that are no fields of a request."""

    fields: str | None = setting(None, FIELDS, one_of=lambda: [*CHOICES], metavar="NAMES")
    append: str | None = setting(
        None,
        "in place of --documents: add these to the index in --output, and to all its parts",
        metavar="NAME|FILE",
    )
    output: str | None = setting(None, "folder for the index", metavar="DIR")
    check: str | None = setting(
        None, "make nothing: read every file of this index, and say whether they are as written", metavar="DIR"
    )
    parts: str | None = setting(
        None,
        f", NAME:KEY=VALUE,…; {AUTO}: those usual ones that can be made here (default: {USUAL})",
        method="part",
        metavar="NAMES",
    )


def settings_with_flags() -> Iterator[tuple[type[Part], Hint]]:
    """The settings of parts that are flags of `index` and arguments of `build_index`."""
    for one in parts().values():
        yield from ((one, hint) for hint in hints_of(one.Params).values() if hint.field.metadata.get("flag"))


def with_settings(given: Sequence[Written], flags: Mapping[str, Any]) -> list[Written]:
    """Parts with the settings that were given as separate arguments, such as `impact_encoder`.

    Args:
        flags: by the names of `settings_with_flags`; None = not given.

    Raises:
        InputError: a setting of a part that is not requested, or one given twice.
    """
    forms = {one.name: one for one in given}
    for kind, hint in settings_with_flags():
        name = hint.flag
        if (value := flags.get(name)) is None:
            continue
        if kind.name not in forms:
            raise InputError(f"{argument(name, value)}: of {kind.name}; add {kind.name} to {argument('parts')}")
        forms[kind.name] = forms[kind.name].beside({hint.field.name: value}, argument("parts"))
    return list(forms.values())
