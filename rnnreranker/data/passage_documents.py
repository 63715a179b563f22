"""The document of each passage, by its id, a mapping file, or ir_datasets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines
from rnnreranker.data import irds, reqa
from rnnreranker.data.names import is_file
from rnnreranker.runs.columns import check_id

SENTENCE_SIGN = "#"  # in the ids of sentences, as `p7#s0`
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")
_OF_MSMARCO = re.compile(r"msmarco_passage_\d+_\d+")


def documents_by(
    passages: str, docids: Sequence[str] | np.ndarray, *, ordered: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """The document of each passage, and the position of the passage in it.

    Args:
        passages: signs between the ids of document and passage, as in `D7#2`; `reqa-squad` and the like; a file
            `passage<TAB>document`; or an ir_datasets id with `msmarco_document_id`.
        docids: V distinct passages.
        ordered: whether positions are needed: the last number after the signs, the line in the file, or the first
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
    of_sentences = reqa.is_name(passages)
    if of_sentences or (passages and not any(sign.isalnum() or sign.isspace() for sign in passages)):
        sign = SENTENCE_SIGN if of_sentences else passages
        source, document_of = f"passages by {sign!r}", _by_sign(sign, ids)
    else:
        document_of = _by_file(passages, ids) if is_file(passages, "mapping") else _by_ir_datasets(passages, ids)
    if lacking := [passage for passage in ids if passage not in document_of]:
        raise InputError(
            f"{source}: {len(lacking)} of {len(ids)} passages have no document ({', '.join(lacking[:3])}); expected "
            "passages of this collection: `passages` says how they name their documents"
        )
    documents = np.array([document_of[passage][0] for passage in ids], dtype=object)
    if not ordered:
        return documents, None
    if unnumbered := [passage for passage in ids if document_of[passage][1] < 0]:
        raise InputError(
            f"{source}: {len(unnumbered)} of {len(ids)} have no number behind it ({', '.join(unnumbered[:3])}), so "
            "which is first is not known; give a file passage<TAB>document in order"
        )
    return documents, np.array([document_of[passage][1] for passage in ids], dtype=np.int64)


def _by_sign(sign: str, ids: list[str]) -> dict[str, tuple[str, int]]:
    document_of = {}
    for passage in ids:
        document, _, end = passage.rpartition(sign)
        if document:
            number = _LAST_NUMBER.search(end)
            document_of[passage] = document, int(number[0]) if number else -1
    return document_of


def _by_file(path: str, ids: list[str]) -> dict[str, tuple[str, int]]:
    """Asked passage → its document and line."""
    asked = set(ids)
    document_of: dict[str, tuple[str, int]] = {}
    where = Path(path).expanduser()
    for number, line in progress(read_lines(where, "mapping file"), unit="line", what="mapping"):
        if not line.strip():
            continue
        passage, _, document = line.rstrip("\r\n").partition("\t")
        if not passage or not document or "\t" in document:
            raise InputError(f"{where}:{number}: {line.strip()[:80]!r}; expected passage<TAB>document")
        if passage not in asked:
            continue
        check_id(document, "document", f"{where}:{number}")
        was, line_of = document_of.setdefault(passage, (document, number))
        if was != document:
            raise InputError(f"{where}:{number}: passage {passage} is of {document}, and of {was} in line {line_of}")
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
        looked_up = dataset.docs_store().get_many_iter(known) if known else ()
        for one in progress(looked_up, unit="passage", what="passages"):
            first = one.spans[0][0] if one.spans else 0  # ((0, 129), (130, 240)): characters of the document
            document_of[one.doc_id] = one.msmarco_document_id, first
    return document_of
