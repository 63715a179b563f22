"""The document of each passage, by its id, a mapping file, or ir_datasets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.data import irds, reqa
from rnnreranker.data.names import is_file
from rnnreranker.data.records import MAPPING, read_rows

SENTENCE_SIGN = "#"  # in the ids of sentences, as `p7#s0`
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")
Documents = dict[str, tuple[str, int]]  # passage → its document and position


def documents_by(
    passages: str, docids: Sequence[str] | np.ndarray, *, ordered: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """The document of each passage, and the position of the passage in it.

    Args:
        passages: signs between the ids of document and passage, as in `D7#2`; `reqa-squad` and the like; a file
            `passage<TAB>document`; or an ir_datasets id with `msmarco_document_id`.
        docids: V distinct passages.
        ordered: whether positions are needed: the last number after the signs, the row in the file, or the first
            character in the document.

    Returns:
        (V,) object array of document ids; (V,) int64 positions, or None.

    Raises:
        InputError: a passage without a known document or position; a malformed line (file:line); an unknown name.
        UnavailableError: an ir_datasets id whose data are not here.

    >>> documents_by("#", ["D7#2", "D#8#0"], ordered=True)
    (array(['D7', 'D#8'], dtype=object), array([2, 0]))
    """
    ids, source = list(docids), passages
    sign = SENTENCE_SIGN if reqa.is_name(passages) else passages
    if sign and not any(one.isalnum() or one.isspace() for one in sign):
        source, document_of = f"passages by {sign!r}", _by_sign(sign, ids)
    else:
        document_of = _by_file(passages, ids) if is_file(passages, "mapping") else _by_ir_datasets(passages, ids)
    for least, lacking in ((-1, "document"), (0, "number behind it, so which is first is not known")):
        without = [one for one in ids if one not in document_of or document_of[one][1] < least]
        if without and (ordered or least < 0):
            raise InputError(
                f"{source}: {len(without)} of {len(ids)} passages have no {lacking} ({', '.join(without[:3])}); "
                "`passages` says how passages name their documents, or give a file passage<TAB>document in order"
            )
    documents = np.array([document_of[one][0] for one in ids], dtype=object)
    return documents, np.array([document_of[one][1] for one in ids], dtype=np.int64) if ordered else None


def _by_sign(sign: str, ids: list[str]) -> Documents:
    parts = ((passage, *passage.rpartition(sign)[::2]) for passage in ids)
    numbers = ((passage, document, _LAST_NUMBER.search(end)) for passage, document, end in parts if document)
    return {passage: (document, int(number[0]) if number else -1) for passage, document, number in numbers}


def _by_file(path: str, ids: Iterable[str]) -> Documents:
    """Asked passage → its document and the number of the line."""
    asked, document_of = set(ids), Documents()
    rows = read_rows(Path(path).expanduser(), MAPPING)
    for number, (passage, document, where) in enumerate(progress(rows, unit="line", what="mapping")):
        if passage in asked and document_of.setdefault(passage, (document, number))[0] != document:
            raise InputError(f"{where}: passage {passage} is of {document}, and of {document_of[passage][0]} before")
    return document_of


def _by_ir_datasets(name: str, ids: list[str]) -> Documents:
    dataset = irds.load(name)
    fields: tuple[str, ...] = getattr(dataset.docs_cls(), "_fields", ()) if dataset.has_docs() else ()
    if "msmarco_document_id" not in fields:
        raise InputError(
            f"{name}: its passages do not say what document they are of (fields: {', '.join(fields) or 'none'}); "
            "give signs as #, a file passage<TAB>document, or msmarco-passage-v2"
        )
    known = [passage for passage in ids if re.fullmatch(r"msmarco_passage_\d+_\d+", passage)]  # others raise there
    with irds.reading(name, "passages"):
        looked_up = dataset.docs_store().get_many_iter(known) if known else ()
        return {
            one.doc_id: (one.msmarco_document_id, one.spans[0][0] if one.spans else 0)  # spans: of characters
            for one in progress(looked_up, unit="passage", what="passages")
        }
