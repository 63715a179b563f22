"""What a training on groups reads: candidates with positives, texts, and the queries that validate."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.method import find
from rnnreranker.base.process.phases import phase
from rnnreranker.data.fields import asked_fields
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.negatives.make import holds_texts, read_negatives
from rnnreranker.labels.soft import Labels
from rnnreranker.train.fit import Trained, fit
from rnnreranker.train.group.batch_teacher import BatchTeacher
from rnnreranker.train.group.groups import AT_RANDOM, check_collection, enough, first_candidates, merged, pools_of
from rnnreranker.train.params import GroupParams
from rnnreranker.train.query.samples import check_different, held_out_of, validation_of
from rnnreranker.train.request import all_documents, labels_of

if TYPE_CHECKING:
    from rnnreranker.base.settings import Params
    from rnnreranker.train.request import TrainRequest


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

    def content(self) -> list[Any]:
        """What a training is of, for its fingerprint: candidates and texts."""
        both = self.pools, self.checked
        candidates = [
            [[one.qid, one.docids, one.targets.tolist(), one.positive.tolist()] for one in lists] for lists in both
        ]
        teacher = [] if self.teacher is None else [self.teacher.fingerprint]
        collection = [list(self.collection)] if self.collection else []
        qids = sorted({one.qid for lists in both for one in lists})
        texts = [self.queries[qid] for qid in qids], sorted(self.documents.items())
        return [*candidates, *teacher, *collection, *texts]


def load_groups(request: TrainRequest, params: GroupParams) -> GroupInputs:
    """Everything that a request names.

    Raises:
        InputError: files that cannot be read or do not belong together, queries or documents without a text, queries
            without negatives, half of the validation flags.
    """
    from rnnreranker.base.files import file_digest
    from rnnreranker.data.topics import topics_of

    queries: dict[str, str] = {}
    made: dict[str, Any]
    if request.labels is not None and request.negatives is None:
        labels = labels_of(request.labels)
        pools, texts, made = list(labels), False, {"labels": labels.metadata}
    elif request.negatives is not None and request.labels is None:
        mined, texts = read_negatives(request.negatives), holds_texts(request.negatives)
        pools, made = pools_of(mined), {"negatives": file_digest(Path(request.negatives))}
        if texts:
            queries = {one.qid: one.qid for one in mined}
    else:
        both = f"{argument('labels')} or {argument('negatives')}"
        raise InputError(f"give {both}, one of them: what groups are drawn from")
    if not texts:
        if request.topics is None:
            raise InputError(f"{argument('topics')} is missing: it has the texts of the training queries")
        queries = topics_of(request.topics)
    given, others = validation_of(request, params.validation_queries, queries)
    queries |= others
    if given is not None:
        checked = list(given)
    else:
        held_out = held_out_of(list(dict.fromkeys(pool.qid for pool in pools)), params, ("query", "queries"))
        checked = [pool for pool in pools if pool.qid in held_out]
        checked = merged(checked) if request.negatives is not None else checked
        pools = [pool for pool in pools if pool.qid not in held_out]
    check_different((pool.qid for pool in pools), (one.qid for one in checked))
    margins = any((pool.targets[~pool.positive] > 0).any() for pool in pools)
    pools = enough(pools, *params.least)
    checked = [first_candidates(one, params.validation_candidates) for one in checked[: params.validation_queries]]
    check_texts((one.qid for one in (*pools, *checked)), (), queries, {})
    needed = dict.fromkeys(
        docid
        for pool in pools
        for docid, positive, rank in zip(pool.docids, pool.positive.tolist(), _ranks(pool), strict=True)
        if positive or rank < params.depth
    )
    documents = {docid: docid for docid in needed} if texts else _texts(request, needed)
    if texts and given is None:
        documents |= {docid: docid for one in checked for docid in one.docids}
    else:
        documents |= _texts(request, {docid: None for one in checked for docid in one.docids if docid not in documents})
    if params.kind in AT_RANDOM and not texts:
        whole = all_documents(request, "random negatives are drawn from them")
        documents |= {document.docid: document.text for document in whole}
    collection = tuple(sorted(documents)) if params.kind in AT_RANDOM else ()
    return GroupInputs(pools, checked, queries, documents, made, margins, collection=collection)


def _ranks(pool: Labels) -> list[int]:
    """How many candidates that are not positive stand before each."""
    negative = (~pool.positive).astype(int)
    ranks: list[int] = (negative.cumsum() - negative).tolist()
    return ranks


def _texts(request: TrainRequest, wanted: Mapping[str, None]) -> dict[str, str]:
    """The texts of documents, from a source or the index; InputError: neither is given, or documents without a text."""
    if not wanted:
        return {}
    index, source = argument("index"), argument("documents")
    if not request.documents and request.index is None:
        raise InputError(f"give {index}, of an index with texts, or {source}: the texts of the candidates")
    from rnnreranker.index.opening import open_index
    from rnnreranker.search.inputs import texts_for

    opened = None if request.index is None else open_index(request.index)
    texts = texts_for(wanted, opened, request.documents, asked_fields(request.documents, request.fields))
    check_texts((), wanted, {}, texts)
    if empty := sum(not text.strip() for text in texts.values()):
        say(f"{counted(empty, 'candidate')} with an empty text")
    return texts


def train_on_groups(
    inputs: GroupInputs,
    model: str,
    encoder: str,
    output: str | os.PathLike[str],
    params: GroupParams,
    *,
    loss: Params | None = None,
    checkpoints: bool = True,
    device: str = "cpu",
) -> Trained:
    """Train a model on groups and write it to a folder.

    Args:
        inputs: candidates and texts.
        model, output, params, checkpoints, device: as of `fit`.
        encoder: what it begins as: a name, folder or hub id; "none" = from nothing, where the model can be new.
        loss: parameters of the loss that `params` names, None = its defaults.

    Raises:
        InputError: a model that cannot be trained so, a loss without the targets it needs, and as `fit`.
        MissingDependencyError: without sentence-transformers, accelerate or datasets.
    """
    chosen = find("loss", params.loss)(loss)
    if "teacher" in chosen.needs and not inputs.margins:
        raise InputError(
            f"loss {params.loss}: needs targets of the negatives, and the candidates have none; give "
            f"{argument('labels')} of a method that gives them probability, as `labels --method teacher`"
        )
    check_collection(params.kind, params.group_size, inputs.collection)
    for package in ("accelerate", "datasets", "sentence_transformers"):
        require(package, "training", "'rnnreranker[train]'")
    with phase("importing torch and transformers", "imports"):
        importlib.import_module("sentence_transformers")
    return fit(
        lambda: find("trained-model", model)().learner(encoder, params, chosen, inputs, device),
        *(model, output, params),
        checkpoints=checkpoints,
        device=device,
    )
