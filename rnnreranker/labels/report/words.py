"""A page of a query and a text, their words shaded by predicted weight."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base import command
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.base.files import check_writable
from rnnreranker.base.tables import print_table

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels.report.shaded_words import Weighting


def show_words(
    output: str | Path,
    term_scorer: str,
    *,
    query: str | None = None,
    topics: str | Path | Mapping[str, str] | None = None,
    qid: str | None = None,
    text: str | None = None,
    docid: str | None = None,
    index: str | Path | IndexOnDisk | None = None,
) -> None:
    """Print the weights of the words of a query and a text, and write a page of them.

    Args:
        output: page to write; term_scorer: folder of a trained one.
        query: the text of the query; or topics and qid: where it is looked up.
        text: of the document; or docid: of the index.
        index: with counted words, TF-IDF weights (eq. 1) stand beside those predicted.

    Raises:
        InputError: a query or a text that is not given, or twice; unknown ones; no such scorer.
    """
    shown = {name: argument(name) for name in ("query", "topics", "qid", "text", "docid", "index")}
    refuse(
        ((query is None) == (qid is None), f"give {shown['query']} (a text), or {shown['qid']} of {shown['topics']}"),
        ((qid is None) != (topics is None), f"{shown['qid']} and {shown['topics']} go together"),
        ((text is None) == (docid is None), f"give {shown['text']}, or {shown['docid']} of {shown['index']}"),
        (docid is not None and index is None, f"{shown['docid']} needs {shown['index']} (texts of the documents)"),
    )
    check_writable(output)
    from rnnreranker.encode.words.scorer import load_term_scorer
    from rnnreranker.index.opening import open_index
    from rnnreranker.labels.report.shaded_words import weightings_of, write_words

    opened = None if index is None else open_index(index)
    asked = query if qid is None or topics is None else _topic(topics, qid)
    compared = text if opened is None or docid is None else _text(opened, docid)
    assert asked is not None
    assert compared is not None
    scorer = load_term_scorer(term_scorer)
    weightings = weightings_of(asked, compared, scorer, None if opened is None else opened.term_source)
    for name, words in (("query", weightings[0].query), ("text", weightings[0].document)):
        if not words:
            command.say(f"the {name} has no word of the language {scorer.terms.language}: d is 0")
    _print(weightings)
    write_words(Path(output).expanduser(), asked, compared, scorer, weightings)
    command.say(f"page of words: {output}")


def _topic(topics: str | Path | Mapping[str, str], qid: str) -> str:
    from rnnreranker.data.topics import topics_of

    known = topics_of(topics)
    if qid not in known:
        source = topics if isinstance(topics, str | Path) else argument("topics")
        raise InputError(f"{argument('qid', qid)}: no such query in {source}, {nearest(qid, known)}")
    return known[qid]


def _text(index: IndexOnDisk, docid: str) -> str:
    from rnnreranker.parts.texts import texts_of

    texts = {} if index.texts is None else texts_of(index.texts, [docid])
    if docid not in texts:
        raise InputError(
            f"{argument('docid', docid)}: {index.name} has no text of it; give {argument('text')}, or another docid"
        )
    return texts[docid]


def _print(weightings: list[Weighting]) -> None:
    """The weights of all words, and eq. 5, as a table."""
    from rnnreranker.labels.report.shaded_words import rows_of

    header = ["word", *(f"{weighting.name} {of}" for weighting in weightings for of in ("query", "text", "product"))]
    rows: list[list[str]] = []
    for word in rows_of(weightings):
        several = [
            (weighting.query.get(word), weighting.document.get(word), weighting.product(word))
            for weighting in weightings
        ]
        rows.append([word, *("-" if one is None else f"{one:.4f}" for three in several for one in three)])
    rows.append(["d (eq. 5)", *(cell for weighting in weightings for cell in ("-", "-", f"{weighting.degree:.4f}"))])
    print_table(header, rows)
