"""What a tuning is asked for: requests, and the space that they search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form, choose
from rnnreranker.base.device import EXACT, ComputesOnDevices
from rnnreranker.base.errors import InputError
from rnnreranker.base.request import Request
from rnnreranker.base.settings import hints_of
from rnnreranker.base.written_form import Written
from rnnreranker.lab.tune.space import Space
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.runs import Run

RERANKER = "rnn"  # whose settings are searched


@dataclass(frozen=True, kw_only=True)
class TuningRequest(Request):
    """What every tuning is asked for.

    Attributes:
        hits: candidates of a query.
        encoder: of queries, `name:key=value,…`; None = the one that made the index.
        measure: one, that is maximised, or that the test measures; protocol: which grades count; None =
            that of the judgements.
        trials: of every study.
        seed: of the sampler, and of what is drawn.
        storage: a file that keeps the trials, to go on from after a kill; None = memory.
    """

    hits: int = 100
    encoder: Form | None = None
    measure: str = "nDCG@10"
    protocol: str | None = None
    trials: int = 200
    seed: int = 0
    storage: str | Path | None = None


@dataclass(frozen=True, kw_only=True)
class QuerySetRequest(TuningRequest):
    """A tuning on one query set, with perhaps another to test on.

    Attributes:
        index: an opened index, a folder, `pydoc`, or the name of a prebuilt index of Pyserini.
        topics: a name, a file, or qid → text.
        qrels: judgements: a name, a file, {qid: {docid: grade}} or a data frame.
        run: candidates, a Run or a file; None = retrieved densely.
        test_topics, test_qrels: queries to test on, which took no part.
    """

    index: str | Path | IndexOnDisk
    topics: str | Path | Mapping[str, str]
    qrels: Qrels
    run: str | Path | Run | None = None
    test_topics: str | Path | Mapping[str, str] | None = None
    test_qrels: Qrels | None = None


@dataclass(frozen=True, kw_only=True)
class RerankingRequest(ComputesOnDevices, TuningRequest):
    """A tuning of rNN reranking.

    Attributes:
        rerank: rNN in its written form, `rnn:k_exp=2,preset=tas-b`: what it says is held at that value, all other
            settings are searched; the preset is what a search begins with, and what is compared with.
        space: ranges in place of the default ones: a file, setting → range as in such a file, or a Space.
        threads: None = one per core; results do not depend on it.
        device, compute_dtype: where and in which type queries are encoded, as of `devices_of`.
    """

    rerank: Form = RERANKER
    space: str | Path | Mapping[str, Any] | Space[RnnParams] | None = None
    threads: int | None = None
    device: str | None = None
    compute_dtype: str = EXACT

    @cached_property
    def searched(self) -> Space[RnnParams]:
        """The space, with what the written form says held at its value.

        Raises:
            InputError: another reranker, settings that it does not have, or that no tuning varies.
        """
        written = Written.read(self.rerank)
        chosen = choose("reranker", written, "rerank")
        shown = argument("rerank", str(written))
        if chosen.name != RERANKER:
            raise InputError(f"{shown}: expected {RERANKER}, whose settings are searched")
        if strange := [name for name in written.params if name not in hints_of(RnnParams)]:
            raise InputError(f"{shown}: {', '.join(strange)}: not in tuning, which compares vectors of the index")
        held = {name: getattr(chosen.params, name) for name in written.params}
        return Space.of(self.space, chosen.params).keeping(**held)


@dataclass(frozen=True, kw_only=True)
class TuneRequest(QuerySetRequest, RerankingRequest):
    """The settings of rNN reranking that suit a query set: what `tune_reranker` takes, and the flags of `tune`.

    Attributes:
        encoded_queries: a .npy file of the vectors of `topics`.
        test_run: candidates of `test_topics`; None = retrieved densely.
        folds: of the cross-validation, without `test_topics`.
        trials: of every study; 0 = none, for sweeps alone.
    """

    encoded_queries: str | Path | None = None
    test_run: str | Path | Run | None = None
    folds: int = 5


@dataclass(frozen=True, kw_only=True)
class LeaveOutRequest(RerankingRequest):
    """Settings chosen on all collections but one: what `tune_collections` takes, and the flags with --collections.

    Attributes:
        collections: cells, a collection under one first stage each: a file, or name → {index: …, topics: …, qrels: …,
            run: …, collection: …}.
        rule: what chooses among settings, "capped" or "mean", see `choice_rules`.
        trials: settings that are tried, the default among them.
    """

    collections: str | Path | Mapping[str, Mapping[str, Any]]
    rule: str = "capped"
