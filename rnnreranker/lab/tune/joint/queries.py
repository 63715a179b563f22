"""Queries to train on, to validate on and to test on, of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rnnreranker.base.device import trained_on
from rnnreranker.base.errors import InputError
from rnnreranker.lab.tune.joint.request import TuneTrainRequest
from rnnreranker.lab.tune.joint.trial import Test, Trainings
from rnnreranker.lab.tune.query_set import judged_topics

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import QueryVectors


def load_trainings(request: TuneTrainRequest) -> tuple[Trainings, Test, QueryVectors]:
    """What trials share, the test, and the test queries' vectors by the encoder as it is.

    Raises:
        InputError: files that cannot be read or do not belong together, too few queries, an index without vectors or
            without the name of its encoder.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import check_held_out, topics_of
    from rnnreranker.evaluate.protocols import protocol_of
    from rnnreranker.index.opening import open_index
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.runs import Run
    from rnnreranker.search.first_stage import first_stage_of
    from rnnreranker.search.queries import query_vectors, trained_encoder
    from rnnreranker.train.query.samples import split

    index = open_index(request.index)
    how = request.encoding
    encoder, described = trained_encoder(how.encoder, index)
    qrels, texts = qrels_of(request.qrels), topics_of(request.topics)
    usable = _usable(texts, qrels, request)
    if request.test_topics is not None and request.test_qrels is not None:
        judged, tested = qrels_of(request.test_qrels), judged_topics(request.test_topics, request.test_qrels)
        check_held_out(usable, tested)
        share = request.validation_share
    else:
        chosen = split(usable, request.test_share, request.seed)
        judged, tested = qrels, {qid: texts[qid] for qid in usable if qid in chosen}
        usable = [qid for qid in usable if qid not in chosen]
        share = request.validation_share / (1 - request.test_share)
    checked = split(usable, share, request.seed)
    topics = {qid: texts[qid] for qid in usable}
    vectors = query_vectors(how, index, {**topics, **tested})
    queries, base = (vectors.of(list(some)) for some in (topics, tested))
    if request.run is not None:
        whole = first_stage_of(request.run).head(request.hits)
        if lost := [qid for qid in usable if qid not in whole]:
            raise InputError(
                f"{request.shown('run')}: {len(lost)} of the queries have no candidates (first: {lost[0]})"
            )
        run = Run.from_dict({qid: dict(whole[qid]) for qid in usable})
    else:
        run = dense_run(index.vectors, queries, request.hits, threads=None, batch_size=256)
    trainings = Trainings(
        index.vectors,
        topics,
        queries,
        run,
        encoder,
        how.settings.pooling or described.get("pooling"),
        described.get("normalize") if how.settings.normalize is None else how.settings.normalize,
        trained_on(request.device),
        qrels=qrels,
        training=tuple(qid for qid in usable if qid not in checked),
        validation=tuple(qid for qid in usable if qid in checked),
        method=request.labeler.name,
        relevant=request.relevant,
        of_method=request.of_method,
    )
    return trainings, Test(tested, judged, request.measure, protocol_of(judged, request.protocol)), base


def _usable(texts: Mapping[str, str], qrels: Any, request: TuneTrainRequest) -> list[str]:
    positive = set(qrels.loc[qrels["relevance"] >= request.relevant, "query_id"])
    usable = [qid for qid in texts if qid in positive]
    if len(usable) < 8:
        raise InputError(
            f"{len(usable)} of {len(texts)} topics have a positive in {request.shown('qrels')}: too few to cut in three"
        )
    return usable
