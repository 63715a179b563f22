"""The model query: an encoder of queries against fixed document vectors."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, ClassVar

from rnnreranker.base import command, settings
from rnnreranker.base.errors import InputError
from rnnreranker.base.process.phases import phase
from rnnreranker.base.settings import choices, flag, hints_of
from rnnreranker.encode.scorer.params import ScorerParams
from rnnreranker.train.models.base import TrainedModel
from rnnreranker.train.params import TrainingParams, TrainParams

if TYPE_CHECKING:
    from rnnreranker.train.query.training import Trained

SCORERS = choices(hints_of(ScorerParams)["scorer"])


class Query(TrainedModel):
    """A query encoder against fixed document vectors and many candidates a query (CODER), or a scorer on top of it."""

    name = "query"
    needs = frozenset({"topics", "vectors"})
    Params: ClassVar[type[settings.Params]] = TrainParams
    flags = frozenset(
        {"other_index", "pooling", "l2_norm", "neutrality", "scorer", *(set(hints_of(ScorerParams)) - {"scorer"})}
    )

    def train(self, args: argparse.Namespace, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        """Read labels, vectors and texts, and train."""
        assert isinstance(params, TrainParams)
        self.check(params)
        if lacking := [flag(name) for name in ("labels", "index", "topics") if not getattr(args, name)]:
            raise InputError(f"{', '.join(lacking)} missing: --model query needs labels, document vectors and queries")
        scorer = _scorer(args)
        with phase("importing torch and transformers", "imports"):
            from rnnreranker.train.query.fairness import read_neutrality
            from rnnreranker.train.query.inputs import load_inputs
            from rnnreranker.train.query.training import train_encoder

        with phase("reading labels and vectors"):
            found = load_inputs(args, params)
        return train_encoder(
            found.labels,
            found.source,
            found.topics,
            args.encoder,
            args.output,
            params,
            validation=found.validation,
            pooling=args.pooling,
            normalize=args.l2_norm,
            neutrality=read_neutrality(args.neutrality) if args.neutrality else None,
            loss=loss,
            scorer=scorer,
            other_index=args.other_index,
            checkpoints=args.checkpoints,
            device=device,
        )


def _scorer(args: argparse.Namespace) -> ScorerParams | None:
    """The scorer of the flags; None = the inner product."""
    typed = {name: value for name, value in command.given(args, ScorerParams).items() if name != "scorer"}
    if args.scorer == "none":
        if typed:
            raise InputError(f"{flag(next(iter(typed)))}: goes with --scorer {' or '.join(SCORERS)}")
        return None
    with command.naming_flags(typed):
        return ScorerParams(args.scorer, **typed)
