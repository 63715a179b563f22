"""What document each passage is of: by its id, by a mapping file, or by what ir_datasets keeps of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines
from rnnreranker.data import irds, reqa
from rnnreranker.data.names import is_file
from rnnreranker.runs.columns import check_id

SENTENCE_SIGN = "#"  # in the ids of sentences, as `p7#s0`
AT_ONCE = 10_000  # passages looked up in one go
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")
_OF_MSMARCO = re.compile(r"msmarco_passage_\d+_\d+")


def documents_by(
    passages: str, docids: Sequence[str] | np.ndarray, *, ordered: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """The document of each passage, and where in it the passage stands.

    Args:
        passages: signs that stand between the ids of document and passage, as in `D7#2`; `reqa-squad` and the like:
            the sign `#`; a file `passage<TAB>document`, plain or .gz; or an ir_datasets id whose passages have
            `msmarco_document_id`.
        docids: V distinct passages.
        ordered: whether positions are asked for: the last number after the signs, the line in the file, or the first
            character of the passage in its document.

    Returns:
        (V,) object array of document ids; (V,) int64, or None where not asked for.

    Raises:
        InputError: passages whose document is not known, or whose position is asked for and not known; a malformed
            line (file:line); a name that is none of these.
        UnavailableError: an ir_datasets id whose data are not here.

    >>> documents_by("#", ["D7#2", "D#8#0"], ordered=True)
    (array(['D7', 'D#8'], dtype=object), array([2, 0]))
    """
    ids, source = list(docids), passages
    of_sentences = passages in reqa.NAMES or passages.startswith(reqa.MADE_FROM)
    if of_sentences or (passages and not any(sign.isalnum() or sign.isspace() for sign in passages)):
        sign = SENTENCE_SIGN if of_sentences else passages
        source, document_of = f"passages by {sign!r}", _by_sign(sign, ids, ordered)
    else:
        document_of = _by_file(passages, ids) if is_file(passages, "mapping") else _by_ir_datasets(passages, ids)
    if lacking := [passage for passage in ids if passage not in document_of]:
        raise InputError(
            f"{source}: {len(lacking)} of {len(ids)} passages have no document ({', '.join(lacking[:3])}); expected "
            "passages of this collection: `passages` says how they name their documents"
        )
    documents = np.array([document_of[passage][0] for passage in ids], dtype=object)
    if ordered and (unnumbered := [passage for passage in ids if document_of[passage][1] < 0]):
        raise InputError(
            f"{source}: {len(unnumbered)} of {len(ids)} have no number behind it ({', '.join(unnumbered[:3])}), so "
            "which is first is not known; give a file passage<TAB>document in order"
        )
    return documents, np.array([document_of[passage][1] for passage in ids], dtype=np.int64) if ordered else None


def _by_sign(sign: str, ids: list[str], ordered: bool) -> dict[str, tuple[str, int]]:
    """Passage → its document, and the last number behind the sign, -1 where there is none."""
    document_of = {}
    for passage in ids:
        document, _, end = passage.rpartition(sign)
        number = _LAST_NUMBER.search(end) if ordered else None
        if document:
            document_of[passage] = document, int(number[0]) if number else -1
    return document_of


def _by_file(path: str, ids: list[str]) -> dict[str, tuple[str, int]]:
    """Passage → its document and line, for those asked for alone: a file may have more lines than memory holds."""
    asked = set(ids)
    document_of: dict[str, tuple[str, int]] = {}
    where = Path(path).expanduser()
    for number, line in progress(read_lines(where, "mapping file"), unit="line", what="mapping"):
        passage, tab, document = line.rstrip("\r\n").partition("\t")
        if not tab or not passage or not document or "\t" in document:
            if not line.strip():
                continue
            raise InputError(f"{where}:{number}: {line.strip()[:80]!r}; expected passage<TAB>document")
        if passage not in asked:
            continue
        check_id(document, "document", f"{where}:{number}")
        if passage in document_of and document_of[passage][0] != document:
            was, line_of = document_of[passage]
            raise InputError(f"{where}:{number}: passage {passage} is of {document}, and of {was} in line {line_of}")
        document_of.setdefault(passage, (document, number))
    return document_of


def _by_ir_datasets(name: str, ids: list[str]) -> dict[str, tuple[str, int]]:
    dataset = irds.load(name)
    fields: tuple[str, ...] = getattr(dataset.docs_cls(), "_fields", ()) if dataset.has_docs() else ()
    if "msmarco_document_id" not in fields:
        raise InputError(
            f"{name}: its passages do not say what document they are of (fields: {', '.join(fields) or 'none'}); "
            "give signs as #, a file passage<TAB>document, or msmarco-passage-v2"
        )
    known = [passage for passage in ids if _OF_MSMARCO.fullmatch(passage)]
    document_of: dict[str, tuple[str, int]] = {}
    with irds.reading(name, "passages"):
        store: Any = dataset.docs_store() if known else None
        for start in progress(range(0, len(known), AT_ONCE), unit="lookup", what="passages"):
            for one in store.get_many_iter(known[start : start + AT_ONCE]):
                first = one.spans[0][0] if one.spans else 0  # ((0, 129), (130, 240)): characters of the document
                document_of[one.doc_id] = one.msmarco_document_id, first
    return document_of
