"""Strict JSON: every error of the decoder, and a repeated key, is one line with file and line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text

_BLANKS = " \t\n\r"


def read_json(path: str | os.PathLike[str], what: str = "file", repair: str = "get or write it again") -> Any:
    """The content of a JSON file; InputError: missing, or not JSON, with the line.

    what: the kind of file; repair: the remedy; both for messages.
    """
    text = read_text(path, what)
    try:
        return _decoded(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON ({error.msg}); {repair}") from None
    except ValueError as error:
        raise InputError(f"{path}: not JSON that can be read ({error}); {repair}") from None


def parse_json(text: str, where: str) -> Any:
    """The value of a JSON text at `where`; InputError: not JSON."""
    try:
        return _decoded(text)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error})") from None


def parse_record(text: str, where: str, expected: str = "an object") -> dict[str, Any]:
    """The JSON object of a line at `where`; InputError: not JSON, or no object."""
    try:
        record = _decoded(text)
    except ValueError as error:
        raise InputError(f"{where}: not a JSON object on one line ({error})") from None
    if not isinstance(record, dict):
        raise InputError(f"{where}: a JSON {type(record).__name__}; expected {expected}")
    return record


def parse_records(text: str, source: str, expected: str = "an object") -> Iterator[tuple[str, dict[str, Any]]]:
    """(file:line, object) of the JSON objects of an array, or of consecutive ones.

    Raises:
        InputError: not JSON, or a value that is no object (with source:line).
    """
    at, line, counted = _after_blanks(text, 0), 1, 0
    if in_array := text[at : at + 1] == "[":
        at = _after_blanks(text, at + 1)
    while at < len(text) and not (in_array and text[at] == "]"):
        line, counted = line + text.count("\n", counted, at), at
        where = f"{source}:{line}"
        try:
            record, end = _value_at(text, at)
        except ValueError as error:
            raise InputError(f"{where}: not JSON ({getattr(error, 'msg', error)}); get or write it again") from None
        if not isinstance(record, dict):
            raise InputError(f"{where}: a JSON {type(record).__name__}; expected {expected}")
        yield where, record
        at = _after_blanks(text, end)
        if in_array and text[at : at + 1] == ",":
            at = _after_blanks(text, at + 1)
        elif in_array and text[at : at + 1] != "]":
            raise InputError(f"{where}: neither a comma nor ] behind this entry of an array; get or write it again")
    if text[at:].strip() != ("]" if in_array else ""):
        raise InputError(f"{source}: not a whole JSON array; get or write it again")


def _decoded(text: str) -> Any:
    value, end = _value_at(text, _after_blanks(text, 0))
    if (end := _after_blanks(text, end)) < len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def _value_at(text: str, at: int) -> tuple[Any, int]:
    """The JSON value at a position of a text, and its end; errors are ValueErrors."""
    try:
        value, end = _DECODER.raw_decode(text, at)
        if (escape_at := text.find("\\u", at, end)) >= 0 and "\\ud" in text[escape_at:end].lower():
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no character
    except RecursionError:
        raise ValueError("nested too deep") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair, which UTF-8 cannot hold") from None
    return value, end


def _after_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in _BLANKS and at < len(text):
        at += 1
    return at


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(key for key in keys if keys.count(key) > 1)} stands there a second time")
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct)
