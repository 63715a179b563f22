"""Which fields of documents are their texts: the title in front of the text, or the text alone."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.data import reqa

TEXT = ("text",)
TITLE_AND_TEXT = ("title", "text")
CHOICES = {",".join(fields): fields for fields in (TITLE_AND_TEXT, TEXT)}  # what --fields takes → the fields


def usual_fields(name: str) -> tuple[str, ...]:
    """What is read of the documents of a source where nothing is said: of ReQA the sentence alone, else the title, too.

    >>> usual_fields("reqa-squad"), usual_fields("reqa:collections/xquad-en-reqa"), usual_fields("scifact")
    (('text',), ('text',), ('title', 'text'))
    """
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
    if ",".join(fields) not in CHOICES:
        raise InputError(f"fields {','.join(fields)}: expected {' or '.join(CHOICES)}")
    return tuple(fields)


def add_documents_flags(group: Any, about: str, **options: Any) -> None:
    """The flags --documents and --fields.

    Args:
        group: of a parser; about: help of --documents; options: of --documents.
    """
    group.add_argument("--documents", help=about, **options)
    text = "of --documents (default: those of --index where one is given, the text alone of ReQA, else title,text)"
    group.add_argument("--fields", choices=tuple(CHOICES), help=text)


def asked_fields(args: argparse.Namespace) -> tuple[str, ...] | None:
    """What --fields says, or None.

    Raises:
        InputError: it is given without --documents.
    """
    if args.fields is None:
        return None
    if not args.documents:
        raise InputError("--fields goes with --documents; an index keeps the texts that it was made of")
    return CHOICES[args.fields]
