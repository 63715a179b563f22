"""What a training on groups reads: candidates with positives, texts, and the queries that validate."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.data.fields import asked_fields
from rnnreranker.labels.negatives.reading import holds_texts, read_negatives
from rnnreranker.labels.soft import Labels, SoftLabels
from rnnreranker.train.group.batch_teacher import BatchTeacher
from rnnreranker.train.group.groups import enough, first_candidates, merged, pools_of
from rnnreranker.train.group.negative_kinds import AT_RANDOM
from rnnreranker.train.group.params import GroupParams
from rnnreranker.train.query.inputs import check_validation, hard_labels
from rnnreranker.train.query.samples import split


@dataclass(frozen=True, eq=False)
class GroupInputs:
    """What groups are drawn from, the validation queries, and all texts.

    Args:
        pools: candidates of training queries, with enough negatives for a group.
        checked: candidates of the validation queries.
        queries, documents: texts by id.
        made: how the candidates were made, for the record.
        margins: whether the targets say more than what is positive.
        teacher: that says of any document what the targets say of candidates; None = it is not asked.
        collection: docids of all documents, ascending, where negatives are drawn from them at random.
    """

    pools: Sequence[Labels]
    checked: Sequence[Labels]
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    made: Mapping[str, Any]
    margins: bool
    teacher: BatchTeacher | None = None
    collection: Sequence[str] = ()


def load_groups(args: argparse.Namespace, params: GroupParams) -> GroupInputs:
    """Everything that the arguments name.

    Raises:
        InputError: files that cannot be read or do not belong together, queries or documents without a text, queries
            without negatives, half of the validation flags.
    """
    from rnnreranker.base.files import file_digest
    from rnnreranker.data.topics import load_topics

    if bool(args.labels) == bool(args.negatives):
        raise InputError("give --labels FILE.parquet or --negatives FILE, one of them: what groups are drawn from")
    check_validation(args)
    queries: dict[str, str] = {}
    made: dict[str, Any]
    if args.labels:
        labels = SoftLabels.read(args.labels)
        pools, texts, made = list(labels), False, {"labels": labels.metadata}
    else:
        mined, texts = read_negatives(args.negatives), holds_texts(args.negatives)
        pools, made = pools_of(mined), {"negatives": file_digest(Path(args.negatives))}
        if texts:
            queries = {one.qid: one.qid for one in mined}
    if not texts:
        if not args.topics:
            raise InputError("--topics is missing: it has the texts of the training queries")
        queries = dict(load_topics(args.topics))
    checked = _validation(args, params, queries)
    if checked is None:
        held_out = split(list(dict.fromkeys(pool.qid for pool in pools)), params.validation_share, params.seed)
        checked = (
            merged([pool for pool in pools if pool.qid in held_out])
            if args.negatives
            else [pool for pool in pools if pool.qid in held_out]
        )
        pools = [pool for pool in pools if pool.qid not in held_out]
        if not held_out or not pools:
            raise InputError(
                "the queries cannot be split into training and validation; give validation queries of their own "
                "(--validation-run or --validation-labels)"
            )
    if twice := sorted({pool.qid for pool in pools} & {one.qid for one in checked}):
        raise InputError(
            f"{counted(len(twice), 'query', 'queries')} in both training and validation (first: "
            f"{', '.join(twice[:3])}); expected different queries"
        )
    margins = any((pool.targets[~pool.positive] > 0).any() for pool in pools)
    pools = enough(pools, *params.least)
    checked = [first_candidates(one, params.validation_candidates) for one in checked[: params.validation_queries]]
    if lost := [one.qid for one in (*pools, *checked) if one.qid not in queries]:
        raise InputError(
            f"{counted(len(lost), 'query', 'queries')} without a text (first: {', '.join(lost[:3])}); give the topics "
            "that the labels or negatives were made from"
        )
    needed = dict.fromkeys(
        docid
        for pool in pools
        for docid, positive, place in zip(pool.docids, pool.positive.tolist(), _ranks(pool), strict=True)
        if positive or place < params.depth
    )
    documents = {docid: docid for docid in needed} if texts else _texts(args, needed)
    if texts and not args.validation_run and not args.validation_labels:
        documents |= {docid: docid for one in checked for docid in one.docids}
    else:
        documents |= _texts(args, {docid: None for one in checked for docid in one.docids if docid not in documents})
    collection = tuple(sorted(documents if texts else _whole(args, documents))) if params.kind in AT_RANDOM else ()
    return GroupInputs(pools, checked, queries, documents, made, margins, collection=collection)


def _ranks(pool: Labels) -> list[int]:
    """How many candidates that are not positive stand before each."""
    negative = (~pool.positive).astype(int)
    ranks: list[int] = (negative.cumsum() - negative).tolist()
    return ranks


def _validation(args: argparse.Namespace, params: GroupParams, queries: dict[str, str]) -> list[Labels] | None:
    """The candidates of the validation queries that were given, whose texts are put beside the others; None = none."""
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics
    from rnnreranker.runs import Run

    texts = load_topics(args.validation_topics) if args.validation_topics else {}
    if args.validation_labels:
        found = SoftLabels.read(args.validation_labels)
    elif args.validation_run:
        found = hard_labels(
            Run.read(args.validation_run), texts, load_qrels(args.validation_qrels), params.validation_queries
        )
        texts = {qid: texts[qid] for qid in found.qids}
    else:
        return None
    if other := [qid for qid, text in texts.items() if queries.get(qid, text) != text]:
        raise InputError(
            f"{args.validation_topics}: query {other[0]} has another text in {args.topics}; expected one text for an id"
        )
    queries.update(texts)
    return list(found)


def _whole(args: argparse.Namespace, documents: dict[str, str]) -> dict[str, str]:
    """The texts of all documents of --documents or the index, which are put to those that are known.

    Raises:
        InputError: neither has texts.
    """
    from rnnreranker.data.documents import load_documents
    from rnnreranker.parts.texts import documents_of
    from rnnreranker.search.indexes import open_index

    found = load_documents(args.documents, asked_fields(args)) if args.documents else None
    if found is None:
        texts = open_index(args.index).texts if args.index else None
        if texts is None:
            raise InputError("random negatives: give --index, of an index with texts, or --documents: all documents")
        found = documents_of(texts)
    documents |= {document.docid: document.text for document in found}
    return documents


def _texts(args: argparse.Namespace, wanted: Mapping[str, None]) -> dict[str, str]:
    """The texts of documents, from --documents or the index.

    Raises:
        InputError: neither is given, or documents without a text.
    """
    if not wanted:
        return {}
    if not args.documents and not args.index:
        raise InputError("give --index, of an index with texts, or --documents: the texts of the candidates")
    from rnnreranker.labels.__main__ import texts_for
    from rnnreranker.search.indexes import open_index

    index = open_index(args.index) if args.index else None
    found = texts_for(wanted, index, args.documents, asked_fields(args))
    if lost := [docid for docid in wanted if docid not in found]:
        raise InputError(
            f"{counted(len(lost), 'candidate')} of {len(wanted)} without a text (first: {', '.join(lost[:3])}); give "
            "an index with texts, or --documents with all of them"
        )
    if empty := sum(not text.strip() for text in found.values()):
        say(f"{counted(empty, 'candidate')} with an empty text")
    return found
