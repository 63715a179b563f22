"""How passages of MS MARCO's second version lie in documents, and both in bundles: their ids are byte offsets."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass

from rnnreranker.regress.rehearsal.datasets.msmarco import line_of
from rnnreranker.regress.rehearsal.source import Source

PASSAGES = 3  # of a document
DOCUMENT_BUNDLES, PASSAGE_BUNDLES = 60, 70  # ir_datasets looks for each of these files of passages


@dataclass(frozen=True)
class Version2:
    """The second version made of a source: passage n is document n of the source.

    Attributes:
        passages: pid, docid and text of each.
        documents: docid, title and body of each.
        passage_lines, document_lines: bundle → lines of JSON.
    """

    passages: list[tuple[str, str, str]]
    documents: list[tuple[str, str, str]]
    passage_lines: dict[int, list[bytes]]
    document_lines: dict[int, list[bytes]]

    def documents_of(self, passages: Iterable[int]) -> list[str]:
        """Ids of the documents of passages, each once, in the order of the passages."""
        return list(dict.fromkeys(self.passages[one][1] for one in passages))


def version_2(source: Source) -> Version2:
    """Documents of three passages each, in bundles whose offsets name both."""
    texts = source.documents
    made = Version2([], [], {}, {})
    groups = [range(first, min(first + PASSAGES, len(texts))) for first in range(0, len(texts), PASSAGES)]
    for number, group in enumerate(groups):
        bundle = number * DOCUMENT_BUNDLES // len(groups)
        docid = f"msmarco_doc_{bundle:02d}_{_size(made.document_lines, bundle)}"
        body = ""
        for one in group:
            passage = line_of(texts[one].text)
            start = len(body.encode())
            body += passage + " "
            _add_passage(
                made, one * PASSAGE_BUNDLES // len(texts), passage, f"({start},{len(body.encode()) - 1})", docid
            )
        title = texts[group[0]].title
        record = {"url": f"https://example.org/{number}", "title": title, "headings": title, "body": body.strip()}
        made.documents.append((docid, title, body.strip()))
        made.document_lines.setdefault(bundle, []).append(_line({**record, "docid": docid}))
    return made


def bundles(lines: dict[int, list[bytes]], kind: str) -> dict[str, bytes]:
    """Members of the tar of a kind, `passage` or `doc`: gzips of lines."""
    return {
        f"msmarco_v2_{kind}/msmarco_{kind}_{bundle:02d}.gz": gzip.compress(b"".join(of), mtime=0)
        for bundle, of in sorted(lines.items())
    }


def _add_passage(made: Version2, bundle: int, passage: str, spans: str, docid: str) -> None:
    pid = f"msmarco_passage_{bundle:02d}_{_size(made.passage_lines, bundle)}"
    made.passages.append((pid, docid, passage))
    record = {"pid": pid, "passage": passage, "spans": spans, "docid": docid}
    made.passage_lines.setdefault(bundle, []).append(_line(record))


def _size(lines: dict[int, list[bytes]], bundle: int) -> int:
    return sum(map(len, lines.get(bundle, ())))


def _line(record: dict[str, str]) -> bytes:
    return (json.dumps(record) + "\n").encode()
