"""The model dual: an encoder of queries and of documents to vectors, compared by their cosine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find
from rnnreranker.base.setting_order import in_order
from rnnreranker.base.settings import setting
from rnnreranker.train.losses import CosineLoss
from rnnreranker.train.models.base import GroupModel
from rnnreranker.train.params import Kind, OneLengthParams, in_batch_setting, temperature_setting


@in_order
@dataclass(frozen=True)
class DualParams(OneLengthParams):
    """How a dual encoder is trained; the presets have what paper 004 states: length, loss and alpha.

    It states neither learning rate nor batch size, epochs or negatives: those are the defaults. `f-ebr` is ours: of
    that row the paper names another alone (Huang et al., KDD 2020), whose loss and two towers stand here as we remember
    them, for `--encoder none`; rate, epochs and margin are in neither.
    """

    loss: str = "distance"
    group_size: int = 4
    batch_size: int = 16
    epochs: float = 3.0
    learning_rate: float = 2e-5
    max_length: int | None = 64
    towers: Literal["shared", "separate"] = setting(
        "shared", "towers: one encoder of queries and documents, or one of each, that begin alike", tunable=False
    )
    negatives_from: Literal["run", "random", "mixed", "in-batch"] = setting(
        "run",
        "source of a group's negatives: run, the first `depth` candidates; random, `depth` documents of the "
        "collection, drawn for the query; mixed, as many of each; in-batch, none are drawn whatever the group_size: "
        "those of the batch's other queries",
        tunable=False,
    )
    in_batch_negatives: bool = in_batch_setting()
    inverse_temperature: float | None = temperature_setting()
    label_scale: Literal["scores", "cosine", "maxmin", "targets"] = setting(
        "scores",
        "scale of labels in [0, 1], for the loss distance: scores that are cut, (1 + score) / 2, from the lowest score "
        "of a query to its highest, or targets over the largest",
        tunable=False,
    )

    ours: ClassVar[frozenset[str]] = frozenset({"f-ebr"})

    of_loss: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "le-none": {"alpha": 0.0},
        "le-bs": {"alpha": 1.0},
        "le-bs-nq": {"alpha": 0.2},
    }

    @property
    def kind(self) -> Kind:
        return self.negatives_from


_PAPER = DualParams(max_length=64)
DualParams.presets = {
    "le-none": _PAPER,  # SBERT with the paper's loss
    "le-bs": _PAPER,  # SQuAD, and every cold start
    "le-bs-nq": _PAPER,
    "f-ebr": replace(_PAPER, loss="triplet", towers="separate", learning_rate=1e-2, epochs=10.0),
}


class Dual(GroupModel):
    """A dual encoder (paper 004, Section 3.4): one or two towers, mean pooling, vectors of length 1."""

    name = "dual"
    learns = "rnnreranker.train.group.dual:DualLearner"
    trains = "encoder"
    Params: ClassVar[type[settings.Params]] = DualParams
    cosines = True

    def check(self, params: DualParams) -> None:
        """As of every model, and that no temperature is given to a loss of the cosines themselves."""
        super().check(params)
        if params.inverse_temperature is not None and issubclass(find("loss", params.loss), CosineLoss):
            raise InputError(
                f"inverse_temperature={params.inverse_temperature:g}: expected none with the loss {params.loss}, which "
                "is of the cosines themselves"
            )
