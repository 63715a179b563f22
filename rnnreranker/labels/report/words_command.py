"""`python -m rnnreranker.labels words`: a page of a query and a text, their words shaded by predicted weight."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.base.files import check_writable
from rnnreranker.base.tables import print_table

if TYPE_CHECKING:
    from rnnreranker.labels.report.shaded_words import Way
    from rnnreranker.search.indexes import Index

EPILOG = """examples:
  python -m rnnreranker.labels words --term-scorer my-scorer --query "who wrote it" --text "Ada wrote it." \\
      --output words.html
  python -m rnnreranker.labels words --term-scorer my-scorer --index my-words --topics test.tsv --qid q1 --docid d7 \\
      --output words.html
"""


def words_parser() -> argparse.ArgumentParser:
    """The arguments of `labels words`."""
    parser = command.parser("labels words", "Show the words of a query and a text, shaded by their weight.", EPILOG)
    parser.add_argument("--term-scorer", required=True, metavar="DIR", help="of train --model term-scorer")
    parser.add_argument("--query", metavar="TEXT", help="the text of the query")
    parser.add_argument("--topics", help="where --qid is looked up: file, ir_datasets id, `pydoc`")
    parser.add_argument("--qid", help="a query of --topics, in place of --query")
    parser.add_argument("--text", help="the text of the document")
    parser.add_argument("--docid", help="a document of --index, in place of --text")
    parser.add_argument("--index", help="with the part terms: TF-IDF weights (eq. 1) beside those predicted")
    parser.add_argument("--output", required=True, metavar="FILE.html", help="page to write")
    return parser


def show_words(args: argparse.Namespace) -> int:
    """Print the weights, and write the page; the exit code.

    Args:
        args: of `words_parser`.
    """
    refuse(
        ((args.query is None) == (args.qid is None), "give --query TEXT, or --qid of --topics"),
        ((args.qid is None) != (args.topics is None), "--qid and --topics go together"),
        ((args.text is None) == (args.docid is None), "give --text TEXT, or --docid of --index"),
        (args.docid is not None and args.index is None, "--docid needs --index (texts of the documents)"),
    )
    check_writable(args.output)
    from rnnreranker.encode.words.scorer import load_term_scorer
    from rnnreranker.labels.report.shaded_words import ways_of, write_words
    from rnnreranker.search.indexes import open_index

    index = None if args.index is None else open_index(args.index)
    query = args.query if args.qid is None else _topic(args.topics, args.qid)
    text = args.text if index is None or args.docid is None else _text(index, args.docid)
    scorer = load_term_scorer(args.term_scorer)
    ways = ways_of(query, text, scorer, None if index is None else index.term_source)
    for name, words in (("query", ways[0].query), ("text", ways[0].document)):
        if not words:
            command.say(f"the {name} has no word of the language {scorer.terms.language}: d is 0")
    _print(ways)
    write_words(Path(args.output).expanduser(), query, text, scorer, ways)
    command.say(f"page of words: {args.output}")
    return 0


def _topic(topics: str, qid: str) -> str:
    from rnnreranker.data.topics import load_topics

    known = load_topics(topics)
    if qid not in known:
        raise InputError(f"--qid {qid}: no such query in {topics}, {nearest(qid, known)}")
    return known[qid]


def _text(index: Index, docid: str) -> str:
    from rnnreranker.parts.texts import texts_of

    found = {} if index.texts is None else texts_of(index.texts, [docid])
    if docid not in found:
        raise InputError(f"--docid {docid}: {index.name} has no text of it; give --text, or another docid")
    return found[docid]


def _print(ways: list[Way]) -> None:
    """The weights of all words, and eq. 5, as a table."""
    from rnnreranker.labels.report.shaded_words import rows_of

    header = ["word", *(f"{way.name} {of}" for way in ways for of in ("query", "text", "product"))]
    rows: list[list[str]] = []
    for word in rows_of(ways):
        several = [(way.query.get(word), way.document.get(word), way.product(word)) for way in ways]
        rows.append([word, *("-" if one is None else f"{one:.4f}" for three in several for one in three)])
    rows.append(["d (eq. 5)", *(cell for way in ways for cell in ("-", "-", f"{way.degree:.4f}"))])
    print_table(header, rows)
