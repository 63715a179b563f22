"""Documents and topics between tags of any case and layout: TREC's <DOC>…</DOC> and <top>…</top>, and XML topics."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from rnnreranker.base.command import counted, notice
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import read_lines

TITLES = {"headline", "title", "hl", "ttl"}
TAGS = {"text", "dd", "date", "lp", "leadpara"}  # with those of titles, what Anserini's TrecCollection reads
NUMBER, QUERY = ("num", "number", "qid", "id", "identifier"), ("title", "query")
_DOCNO = re.compile(r"<docno>\s*(.*?)\s*</docno\s*>", re.IGNORECASE | re.DOTALL)
_WEB = re.compile(r"<html[\s>]|.*?</dochdr\s*>", re.IGNORECASE | re.DOTALL)
_HAS_TEXT = re.compile(f"<({'|'.join(TAGS)})[ >]", re.IGNORECASE)
_HEAD = re.compile(r"(?<=[</])head(?=[ >])", re.IGNORECASE)  # of news a title, which a parser of HTML skips
_BLOCK = re.compile(
    r"(?=<(?!/?(?:a|abbr|b|big|code|em|font|i|mark|q|s|small|span|strong|sub|sup|tt|u)[\s/>])[a-z/!])", re.IGNORECASE
)  # before a tag that is not inside words
_OF_TOPIC = re.compile(
    rf"<({'|'.join((*NUMBER, *QUERY))})(?:\s[^<>]*)?>\s*(?:(?:number|topic):)?(.*?)(?=</\1\s*>|\n\s*<|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""\s(?:number|num|qid|id)\s*=\s*["']([^"']*)["']""", re.IGNORECASE)

Records = Iterator[tuple[str, dict[str, str]]]


def documents(path: Path) -> Records:
    """(file:line, record of id, title and text) of every <DOC>, whose markup the HTML parser of ir_datasets reads.

    Title and text are those of Anserini's tags; the text of a web document (<DOCHDR> or <HTML>) is everything after
    the header, of one without a tag of text everything but <DOCNO> and titles.

    Raises:
        InputError: text outside <DOC>, a document without <DOCNO> or </DOC> (with file:line).
    """
    parser = require("ir_datasets.util.html_parsing", f"the documents {path}", "ir_datasets")
    lost = 0
    for where, _, block in _elements(path, "doc", errors="replace"):
        docno, others = _DOCNO.search(block), _BLOCK.sub(" ", _DOCNO.sub("", block, count=1))
        if web := _WEB.search(others):
            title, (text,) = "", parser.sax_html_parser(others.removeprefix(web[0]), fields=[None])
        else:
            fields = [TITLES, TAGS if _HAS_TEXT.search(others) else None]
            title, text = parser.sax_html_parser(_HEAD.sub("hl", others), fields=fields)
        lost += "\ufffd" in text
        yield where, {"id": docno[1] if docno else "", "title": title, "text": text}
    if lost:
        notice(f"{path}: {counted(lost, 'document')} not UTF-8, whose characters are lost; convert the file with iconv")


def topics(path: Path) -> Records:
    """(file:line, record of id and text) of every <top> or <topic>.

    The id is <num> or an attribute of <topic>; the text is <title>, <query>, or all of a topic without tags.

    Raises:
        InputError: a topic without end, a field twice, text outside topics (with file:line).
    """
    for where, attributes, block in _elements(path, "top(?:ic)?"):
        tagged = [(tag.lower(), plain(part)) for tag, part in _OF_TOPIC.findall(block)]
        fields = dict(tagged)
        if len(fields) < len(tagged):
            raise InputError(f"{where}: a field of this topic stands in it twice; expected <num> and <title> once")
        if "<" not in block:  # as the topics of TREC's clinical trials
            fields["title"] = plain(block)
        if given := _ATTRIBUTE.search(attributes):
            fields.setdefault("num", plain(given[1]))
        qid, query = (next((fields[tag] for tag in tags if fields.get(tag)), "") for tags in (NUMBER, QUERY))
        yield where, {"id": qid, "text": query}


def _elements(path: Path, tag: str, errors: str = "strict") -> Iterator[tuple[str, str, str]]:
    """(file:line, attributes, content) of every element; tag: a pattern.

    Raises:
        InputError: text outside elements, nested elements, an element without end (with file:line).
    """
    starts, ends = re.compile(rf"<{tag}(\s[^<>]*)?>", re.IGNORECASE), re.compile(rf"</{tag}\s*>", re.IGNORECASE)
    held: list[str] = []
    for number, line in read_lines(path, "file between tags", errors):
        *whole, rest = ends.split(line)
        for part in whole:
            text = "\n".join([*held, part])
            held = []
            opened = [*starts.finditer(text)]
            before = text[: opened[0].start()] if opened else text
            if len(opened) != 1 or plain(before):
                said = "text before it" if len(opened) == 1 else f"{len(opened)} starts"
                raise InputError(f"{path}:{number}: the element that ends here has {said}; expected <{tag}>…</{tag}>")
            yield f"{path}:{number - text.count(chr(10), len(before))}", opened[0][1] or "", text[opened[0].end() :]
        held.append(rest)
    if plain("\n".join(held)):
        raise InputError(f"{path}:{number}: no </{tag}> at the end; the file is cut off, get it again")


def plain(text: str) -> str:
    """The words of a text, without tags, comments and entities.

    >>> plain("one<!-- two --> <b>three</b>  AT&amp;T, 1 < 2")
    'one three AT&T, 1 < 2'
    """
    return " ".join(html.unescape(re.sub(r"(?s)<!--.*?-->|<[a-z/!?][^<>]*>", " ", text, flags=re.IGNORECASE)).split())
