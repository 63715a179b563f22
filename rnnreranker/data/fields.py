"""Which fields of documents are their texts: the title in front of the text, or the text alone."""

from __future__ import annotations

from collections.abc import Sequence

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError

TEXT = ("text",)
TITLE_AND_TEXT = ("title", "text")
FIELDS = "of --documents (default: as in the index)"
CHOICES = {",".join(fields): fields for fields in (TITLE_AND_TEXT, TEXT)}  # what --fields takes → the fields


def usual_fields(name: str) -> tuple[str, ...]:
    """What is read of the documents of a source where nothing is said: of ReQA the sentence alone, else the title, too.

    >>> usual_fields("reqa-squad"), usual_fields("reqa:collections/xquad-en-reqa"), usual_fields("scifact")
    (('text',), ('text',), ('title', 'text'))
    """
    from rnnreranker.data import reqa

    return TEXT if reqa.is_name(name) else TITLE_AND_TEXT


def fields_of(name: str, fields: Sequence[str] | None) -> tuple[str, ...]:
    """The fields that are read of a source.

    Args:
        name: of the source; fields: those wanted, None = the usual ones of the source.

    Raises:
        InputError: neither ("text",) nor ("title", "text").
    """
    if fields is None:
        return usual_fields(name)
    if not isinstance(fields, list | tuple) or ",".join(map(str, fields)) not in CHOICES:
        shown = ",".join(map(str, fields)) if isinstance(fields, list | tuple) else repr(fields)
        raise InputError(f"fields {shown}: expected {' or '.join(CHOICES)}")
    return tuple(fields)


def asked_fields(documents: str | None, fields: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """The fields that were asked for of a source of documents, `title,text` or `text`; None = none were.

    Raises:
        InputError: fields without documents, or others.
    """
    if fields is None:
        return None
    if not documents:
        raise InputError(
            f"{argument('fields')} goes with {argument('documents')}; an index keeps the texts that it was made of"
        )
    return fields_of(str(documents), fields.split(",") if isinstance(fields, str) else fields)
