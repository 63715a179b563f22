"""Settings of a training that would change nothing, because its loss, or another setting, leaves them unread."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.train.losses import BatchLoss, CosineLoss, Loss, PositivesLoss


def check_read(params: Any, loss: Loss, given: Collection[str]) -> None:
    """Refuse settings that were given to a training, and would be taken without effect.

    Args:
        params: of the training, with all its settings.
        loss: that they name, with its own.
        given: the names of settings that somebody wrote down; those of presets and defaults stay as they are.

    Raises:
        InputError: all that are not read, each with the reason.
    """
    faults = [
        f"{name}={getattr(params, name)}: expected none with {reason}"
        for name, reason in unread(params, loss).items()
        if name in given and getattr(params, name)
    ]
    if faults:
        raise InputError("; ".join(faults))


def unread(params: Any, loss: Loss) -> dict[str, str]:
    """Settings of a training that are not read, by its loss and its other settings → why; only those that it has.

    >>> from rnnreranker.train.models.dual import DualParams
    >>> from rnnreranker.train.losses import TripletLoss
    >>> list(unread(DualParams(), TripletLoss()))
    ['label_scale', 'in_batch_negatives']
    """
    named, reasons = f"the loss {loss.name}", {}
    if not isinstance(loss, CosineLoss) or isinstance(loss, PositivesLoss):
        reasons["label_scale"] = f"{named}, which reads targets, no labels by themselves"
    elif not loss.reads_targets():
        reasons["label_scale"] = "alpha=0, at which only hard labels count"
    if not loss.reads_targets():
        reasons["batch_teacher"] = f"{named}, which asks what is positive alone"
    if isinstance(loss, BatchLoss):
        reasons["in_batch_negatives"] = f"{named}, which takes the candidates of the whole batch by itself"
    if getattr(params, "negatives_from", "") == "in-batch":
        reason = "negatives_from=in-batch, which draws none and takes those of the whole batch"
        reasons |= dict.fromkeys(("group_size", "depth", "in_batch_negatives"), reason)
    if "teacher" in loss.needs and hasattr(params, "random_negatives"):
        reason = f"{named}, in which documents without a target take no part"
        reasons |= {"in_batch_negatives": reason, "random_negatives": reason}
    if getattr(params, "schedule", "plateau") != "plateau":
        of_plateau = [field.name for field in dataclasses.fields(params) if field.name.startswith("plateau_")]
        reasons |= dict.fromkeys(of_plateau, f"the schedule {params.schedule}, which ends by itself")
    if not getattr(params, "neutrality_weight", 1):
        reasons["neutrality_cutoff"] = "neutrality_weight=0, at which no divergence is computed"
    if getattr(params, "architecture", "") == "doc":
        reasons["lambda_q"] = "the architecture doc, whose queries are counts of words, which no training changes"
    return {name: reason for name, reason in reasons.items() if hasattr(params, name)}
