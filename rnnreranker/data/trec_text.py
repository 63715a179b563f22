"""Documents and topics between tags of any case and layout: TREC's <DOC>…</DOC> and <top>…</top>, and XML topics."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

from rnnreranker.base.command import counted, notice
from rnnreranker.base.errors import InputError
from rnnreranker.runs.columns import check_id, shown_word

TITLES = ("headline", "title", "hl", "head", "ttl")
TAGS = ("text", *TITLES, "dd", "date", "lp", "leadpara")  # those that Anserini's TrecCollection reads
INLINE = re.compile("a|abbr|acronym|b|big|code|del|em|font|i|ins|mark|q|s|small|span|strike|strong|sub|sup|tt|u", re.I)
_DOC = re.compile(r"(?:^|(?<=>))\s*<doc(?:\s[^<>]*)?>|</doc\s*>", re.IGNORECASE)
_DOCNO = re.compile(r"<docno>\s*(.*?)\s*(?:</docno\s*>|\n|$)", re.IGNORECASE | re.DOTALL)
_HEADER = re.compile(r".*?</dochdr\s*>", re.IGNORECASE | re.DOTALL)
_WEB = re.compile(r"<(?:dochdr|html)[\s>]", re.IGNORECASE)
_EDGE = re.compile(rf"<(/?)({'|'.join(TAGS)})(?:\s[^<>]*)?>", re.IGNORECASE)
_MARKUP = re.compile(
    r"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<(script|style|noscript)\b.*?</\2\s*>|</?([a-z][^\s<>/]*)[^<>]*>|<[!?][^<>]*>",
    re.IGNORECASE | re.DOTALL,
)
_ENTITY = re.compile(r"&#?\w+;")

_TOPIC = re.compile(r"<(/?)top(?:ic)?(\s[^<>]*)?>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""\s(?:number|num|qid|id)\s*=\s*["']([^"']*)["']""", re.IGNORECASE)
NUMBER, QUERY = ("num", "number", "qid", "id", "identifier"), ("title", "query")
_OTHERS = "narr|narrative|desc|description|question|subtopic|smry|con|fac|def|dom|summary"
_FIELD_OF_TOPIC = re.compile(
    rf"<({'|'.join((*NUMBER, *QUERY))})(?:\s[^<>]*)?>\s*(?:(?:number|topic):)?(.*?)"
    rf"(?=</\1\s*>|<(?:{'|'.join((*NUMBER, *QUERY, _OTHERS))})(?:\s[^<>]*)?>|\n\s*<|\Z)",
    re.IGNORECASE | re.DOTALL,
)


def documents(lines: Iterable[str], source: str, titles: bool = True) -> Iterator[tuple[str, str, str]]:
    """(file:line, docid, text) of every <DOC>.

    The text is that of Anserini's tags (`TAGS`); of a web document (<DOCHDR> or <HTML>) everything after the header;
    else everything but <DOCNO>. Markup is removed, and entities become characters. titles: include them.

    Raises:
        InputError: text outside <DOC>, a document without <DOCNO> or </DOC> (with file:line).
    """
    cut: list[str] = []
    for where, _, block in _elements(lines, source, _DOC, "document", "<DOC>"):
        docid, text, whole = _document(block, titles, where)
        if whole > 2 * len(text) + 200:
            cut.append(docid)
        yield where, docid, text
    if cut:
        notice(
            f"{source}: more than half of {counted(len(cut), 'document')} (first: {cut[0]}) is left out, as it stands "
            f"outside of {', '.join(tag.upper() for tag in TAGS)}"
        )


def _elements(
    lines: Iterable[str], source: str, edge: re.Pattern[str], what: str, tag: str
) -> Iterator[tuple[str, str, str]]:
    """(file:line, start tag, content) of every element; edge: its tags; what, tag: its name and tag for messages.

    Raises:
        InputError: text outside elements, nested elements, an element without end (with file:line).
    """
    started = 0  # a line, from 1; 0 = between two elements
    first, block, outside = "", [""], ""
    for number, line in enumerate(lines, 1):
        rest = line.rstrip("\r\n")
        while match := edge.search(rest) if "<" in rest else None:
            before, rest = rest[: match.start()], rest[match.end() :]
            ends = match[0].strip().startswith("</")
            if ends != bool(started):
                wrong = f"inside the {what} of line {started}" if started else f"before a {what}"
                raise InputError(f"{source}:{number}: {match[0].strip()} {wrong}; expected {what}s as TREC writes them")
            if ends:
                yield f"{source}:{started}", first, "\n".join([*block, before])
                started = 0
            else:
                _refuse_outside(f"{outside}\n{before}", tag, f"{source}:{number}")
                started, first, block, outside = number, match[0], [], ""
        if started:
            block.append(rest)
        elif rest.strip():
            outside += f"\n{rest}"
            if "<!--" not in outside or "-->" in outside.rpartition("<!--")[2]:  # a comment may go on over lines
                _refuse_outside(outside, tag, f"{source}:{number}")
                outside = ""
    if started:
        raise InputError(
            f"{source}:{started}: this {what} has no {tag[0]}/{tag[1:]}; the file is cut off, get it again"
        )
    _refuse_outside(outside, tag, source)


def _document(block: str, titles: bool, where: str) -> tuple[str, str, int]:
    """Docid, text, and the length of the text of all tags."""
    docno = _DOCNO.search(block)
    if not docno or not docno[1]:
        raise InputError(f"{where}: a document without <DOCNO>; expected <DOCNO>docid</DOCNO>")
    check_id(docno[1], "docid", where)
    others = f"{block[: docno.start()]}\n{block[docno.end() :]}"
    fields = [] if _WEB.search(others) else _fields(others)
    if not fields:
        return docno[1], plain(_HEADER.sub("", others, count=1)), 0
    text = "\n".join(filter(None, (plain(part) for tag, part in fields if titles or tag not in TITLES)))
    return docno[1], text, len(plain(others)) if titles and len(others) > 2 * len(text) else 0


def _fields(block: str) -> list[tuple[str, str]]:
    """The outermost text tags of a document, each with its content."""
    pieces: list[tuple[str, str]] = []
    tag, start = "", 0
    for edge in _EDGE.finditer(block):
        name = edge[2].lower()
        if tag and edge[1] and name == tag:
            pieces.append((tag, block[start : edge.start()]))
            tag = ""
        elif not tag and not edge[1]:
            tag, start = name, edge.end()
    return [*pieces, (tag, block[start:])] if tag else pieces


def plain(text: str) -> str:
    """The text of markup, without tags, comments, scripts and entities.

    >>> plain("one<!-- two --> <b>th</b>ree<br>AT&amp;T, 1 < 2")
    'one three AT&T, 1 < 2'
    """
    if "<" in text:
        text = re.sub(r" {2,}", " ", re.sub(r" *\n *", "\n", _MARKUP.sub(_in_place_of, text)))
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text).strip()


def _in_place_of(markup: re.Match[str]) -> str:
    """ "" for tags inside words, a blank for others, the characters of CDATA."""
    data, _, tag = markup.groups()
    return html.escape(data) if data else "" if tag and INLINE.fullmatch(tag) else " "


def topics(lines: Iterable[str], source: str) -> Iterator[tuple[str, str, str]]:
    """(file:line, qid, text) of every <top> or <topic>.

    The qid is <num> or an attribute of <topic>; the text is <title>, <query>, or all of a topic without tags.

    Raises:
        InputError: a topic without number, text or end, a field twice, text outside topics (with file:line).
    """
    for where, first, block in _elements(lines, source, _TOPIC, "topic", "<top>"):
        yield where, *_topic(block, first, where)


def _topic(block: str, attributes: str, where: str) -> tuple[str, str]:
    fields: dict[str, str] = {}
    for field in _FIELD_OF_TOPIC.finditer(block):
        name, content = field[1].lower(), field[2]
        if name in fields:
            source, _, line = where.rpartition(":")
            again = int(line) + block.count("\n", 0, field.start())
            raise InputError(f"{source}:{again}: <{name}> a second time in the topic of line {line}; expected it once")
        fields[name] = " ".join(plain(content).split())
    if "<" not in block:  # as the topics of TREC's clinical trials
        fields["title"] = " ".join(plain(block).split())
    if given := _ATTRIBUTE.search(attributes):
        fields.setdefault("num", html.unescape(given[1]).strip())
    qid, query = (next((fields[name] for name in names if fields.get(name)), "") for names in (NUMBER, QUERY))
    if not qid or not query:
        raise InputError(f"{where}: a topic with {sorted(fields)}; expected <num> and <title> with text")
    return qid, query


def _refuse_outside(text: str, tag: str, where: str) -> None:
    if left := plain(text):
        raise InputError(f"{where}: text outside {tag} ({shown_word(left)}); expected tags as TREC writes them")
