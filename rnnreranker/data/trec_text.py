"""Documents and topics in the tagged text of TREC: <DOC>…</DOC> and <top>…</top>."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rnnreranker.base.errors import InputError
from rnnreranker.runs.words import check_id

_DOCNO = re.compile(r"<DOCNO>(.*?)(</DOCNO>)?$")
_NUM = re.compile(r"<num>\s*(?:Number:)?\s*(.*?)\s*(?:</num>)?$")
_TITLE = re.compile(r"<title>\s*(?:Topic:)?\s*(.*?)\s*(?:</title>)?$")
_NARRATIVE = re.compile(r"<narr>\s*(?:Narrative:)?\s*(.*?)\s*(?:</narr>)?$")


def documents(lines: Iterable[str], source: str, titles: bool = True) -> Iterator[tuple[str, str]]:
    """(docid, text) of every <DOC>: <DOCNO>, then <TITLE> on a line, then the lines between <TEXT> and </TEXT>.

    Other tags, as <URL>, are passed over. The title goes before the text, on a line of its own.

    Args:
        lines: of a file, with or without their line breaks.
        source: the name of the file for messages.
        titles: whether they are read.

    Raises:
        InputError: text outside <DOC>, a document without <DOCNO>, a last document that does not end (with file:line).
    """
    number, started = 0, 0  # lines, from 1; 0 = between two documents
    docid, title, text = "", "", list[str]()
    inside = False
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r\n")
        if line.startswith("<DOC>"):
            if started:
                raise InputError(f"{source}:{number}: <DOC> inside the document of line {started}; expected </DOC>")
            started, docid, title, text, inside = number, "", "", [], False
        elif not started:
            if line.strip():
                raise InputError(f"{source}:{number}: text outside <DOC>; expected documents as TREC writes them")
        elif line.startswith("</DOC>"):
            if not docid:
                raise InputError(f"{source}:{started}: a document without <DOCNO>")
            check_id(docid, "docid", f"{source}:{started}")
            yield docid, "\n".join(part for part in (title, "\n".join(text).strip()) if part)
            started = 0
        elif match := _DOCNO.match(line):
            docid = match.group(1).strip()
        elif line.startswith("<TITLE>"):
            title = "" if not titles else line.removeprefix("<TITLE>").removesuffix("</TITLE>").strip()
        elif line.startswith("</TEXT>"):
            inside = False
        elif line.startswith("<TEXT>"):
            inside = not line.endswith("</TEXT>")
            text.append(line.removeprefix("<TEXT>").removesuffix("</TEXT>"))
        elif inside:
            text.append(line)
    if started:
        raise InputError(f"{source}:{started}: this document has no </DOC>; the file is cut off, get it again")


def topics(text: str, source: str) -> Iterator[tuple[str, str, str, str]]:
    """(file:line, qid, title, narrative) of every <top>; fields may go on over lines.

    Raises:
        InputError: a topic without <num> or <title>, with one twice, or without </top>, text outside <top> (with
            file:line).
    """
    started, fields, field = 0, dict[str, str](), ""
    patterns = {"num": _NUM, "title": _TITLE, "narr": _NARRATIVE}
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if line.startswith("<top>"):
            if started:
                raise InputError(f"{source}:{number}: <top> inside the topic of line {started}; expected </top>")
            started, fields, field = number, {}, ""
        elif not started:
            if line:
                raise InputError(f"{source}:{number}: text outside <top>; expected topics as TREC writes them")
        elif line.startswith("</top>"):
            where = f"{source}:{started}"
            if not fields.get("num") or not fields.get("title"):
                raise InputError(f"{where}: a topic with {sorted(fields)}; expected <num> and <title> with text")
            yield where, fields["num"], fields["title"], fields.get("narr", "")
            started = 0
        elif line.startswith("<"):
            field = ""
            for name, pattern in patterns.items():
                if match := pattern.match(line):
                    if name in fields:
                        raise InputError(f"{source}:{number}: <{name}> a second time in the topic of line {started}")
                    field, fields[name] = name, match.group(1)
        elif field and line:
            fields[field] = f"{fields[field]} {line}".strip()
    if started:
        raise InputError(f"{source}:{started}: this topic has no </top>; the file is cut off, get it again")
