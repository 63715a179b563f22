"""Documents and topics between tags of any case and layout: TREC's <DOC>…</DOC> and <top>…</top>, and XML topics."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from rnnreranker.base.command import counted, notice
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines

TITLES = ("headline", "title", "hl", "head", "ttl")
TAGS = ("text", *TITLES, "dd", "date", "lp", "leadpara")  # those that Anserini's TrecCollection reads
NUMBER, QUERY = ("num", "number", "qid", "id", "identifier"), ("title", "query")
_DOCNO = re.compile(r"<docno>\s*(.*?)\s*</docno\s*>", re.IGNORECASE | re.DOTALL)
_WEB = re.compile(r"<(?:dochdr|html)[\s>]", re.IGNORECASE)
_HEADER = re.compile(r".*?</dochdr\s*>", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(rf"<({'|'.join(TAGS)})(?:\s[^<>]*)?>(.*?)(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_OF_TOPIC = re.compile(
    rf"<({'|'.join((*NUMBER, *QUERY))})(?:\s[^<>]*)?>\s*(?:(?:number|topic):)?(.*?)(?=</\1\s*>|\n\s*<|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""\s(?:number|num|qid|id)\s*=\s*["']([^"']*)["']""", re.IGNORECASE)
_MARKUP = re.compile(
    r"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<(script|style|noscript)\b.*?</\2\s*>|</?([a-z][^\s<>/]*)[^<>]*>|<[!?][^<>]*>",
    re.IGNORECASE | re.DOTALL,
)
_ENTITY = re.compile(r"&#?\w+;")
_INLINE = re.compile("a|abbr|b|big|code|em|font|i|mark|q|s|small|span|strong|sub|sup|tt|u", re.IGNORECASE)

Records = Iterator[tuple[str, dict[str, str]]]


def documents(path: Path) -> Records:
    """(file:line, record of id, title and text) of every <DOC>.

    Title and text are those of Anserini's tags (`TAGS`); the text of a web document (<DOCHDR> or <HTML>) is everything
    after the header, of one without a tag of text everything but <DOCNO> and titles. Markup is removed, and entities
    become characters.

    Raises:
        InputError: text outside <DOC>, a document without <DOCNO> or </DOC> (with file:line).
    """
    lost = 0
    for where, _, block in _elements(path, "doc", errors="replace"):
        docno = _DOCNO.search(block)
        others = _DOCNO.sub("\n", block, count=1)
        tags = [] if _WEB.search(others) else _FIELD.findall(others)
        fields = [(tag.lower() in TITLES, plain(part)) for tag, part in tags]
        if all(is_title for is_title, _ in fields):
            fields.append((False, plain(_HEADER.sub("", _FIELD.sub(" ", others) if fields else others, count=1))))
        title, text = (
            "\n".join(part for is_title, part in fields if is_title is wanted and part) for wanted in (True, False)
        )
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
        tagged = [(tag.lower(), " ".join(plain(part).split())) for tag, part in _OF_TOPIC.findall(block)]
        fields = dict(tagged)
        if len(fields) < len(tagged):
            raise InputError(f"{where}: a field of this topic stands in it twice; expected <num> and <title> once")
        if "<" not in block:  # as the topics of TREC's clinical trials
            fields["title"] = " ".join(plain(block).split())
        if given := _ATTRIBUTE.search(attributes):
            fields.setdefault("num", html.unescape(given[1]).strip())
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
    """The text of markup, without tags, comments, scripts and entities.

    >>> plain("one<!-- two --> <b>th</b>ree<br>AT&amp;T, 1 < 2")
    'one three AT&T, 1 < 2'
    """
    if "<" in text:
        text = re.sub(r" {2,}", " ", re.sub(r" *\n *", "\n", _MARKUP.sub(_in_place_of, text)))
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text).strip()  # not `&section=` of an address


def _in_place_of(markup: re.Match[str]) -> str:
    """ "" for tags inside words, a blank for others, the characters of CDATA."""
    data, _, tag = markup.groups()
    return html.escape(data) if data else "" if tag and _INLINE.fullmatch(tag) else " "
