"""The fields that make the text of a document: title and text, or the text alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.settings import Request, setting

TEXT = ("text",)
TITLE_AND_TEXT = ("title", "text")
CHOICES = {",".join(fields): fields for fields in (TITLE_AND_TEXT, TEXT)}  # what --fields takes → the fields


def fields_of(name: str, fields: Sequence[str] | None = None) -> tuple[str, ...]:
    """The given fields, or the usual ones of a source: the sentence alone in ReQA, else title and text.

    Raises:
        InputError: neither ("text",) nor ("title", "text").

    >>> fields_of("reqa-squad"), fields_of("reqa:collections/xquad-en-reqa"), fields_of("scifact")
    (('text',), ('text',), ('title', 'text'))
    """
    if fields is None:
        from rnnreranker.data import reqa

        return TEXT if reqa.is_name(name) else TITLE_AND_TEXT
    if not isinstance(fields, list | tuple) or tuple(fields) not in CHOICES.values():
        raise InputError(f"fields {fields!r}: expected {' or '.join(CHOICES)}")
    return tuple(fields)


def asked_fields(documents: str | None, fields: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """The fields that a request names, as `title,text` or `text`; None if it names none.

    Raises:
        InputError: fields without documents, or other fields.
    """
    if fields is None:
        return None
    if not documents:
        raise InputError(
            f"{argument('fields')} goes with {argument('documents')}; an index keeps the texts that it was made of"
        )
    return fields_of(str(documents), fields.split(",") if isinstance(fields, str) else fields)


@dataclass(frozen=True, kw_only=True)
class TextsRequest(Request):
    """Texts of another source than the index; fields: "title,text" or "text"."""

    documents: str | None = setting(None, "texts, where the index has none: .jsonl, .tsv, ir_datasets id, `pydoc`")
    fields: str | None = setting(
        None, "of --documents (default: as in the index)", one_of=lambda: [*CHOICES], metavar="NAMES"
    )

    @property
    def document_fields(self) -> tuple[str, ...] | None:
        """The fields of `documents`; errors as `asked_fields`."""
        return asked_fields(self.documents, self.fields)
