"""Options of labels and training as recipes write them: those that the commands take, with values that they accept."""

from __future__ import annotations

from typing import Any

from rnnreranker.errors import InputError, nearest


def check_labels(options: dict[str, Any]) -> None:
    """Nothing, when `python -m rnnreranker.labels` takes these options.

    Raises:
        InputError: the options that it does not have, or values out of range.
    """
    from rnnreranker.labels.params import LabelParams
    from rnnreranker.method import find
    from rnnreranker.rnn import RnnParams

    rest = dict(options)
    method, depth = rest.pop("method", "evidence"), rest.pop("depth", 1000)
    relevant = rest.pop("relevant", 1)
    find("labeler", str(method))
    for name, value in (("depth", depth), ("relevant", relevant)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"labels {name}: {value!r}; expected an integer >= 1")
    if "label_preset" in rest:
        LabelParams.preset(rest.pop("label_preset"))
    if "preset" in rest:
        RnnParams.preset(rest.pop("preset"))
    _check_fields("labels", rest, LabelParams, RnnParams)


def check_training(options: dict[str, Any]) -> None:
    """Nothing, when `python -m rnnreranker.train` takes these options.

    Raises:
        InputError: the options that it does not have, or values out of range.
    """
    from rnnreranker.train.params import TrainParams

    rest = dict(options)
    if "preset" in rest:
        TrainParams.preset(rest.pop("preset"))
    _check_fields("train", rest, TrainParams)


def _check_fields(what: str, values: dict[str, Any], *kinds: Any) -> None:
    fields = {name: kind for kind in reversed(kinds) for name in kind.__dataclass_fields__}
    unknown = [f"{what} {name}: no such option; {nearest(str(name), fields)}" for name in values if name not in fields]
    if unknown:
        raise InputError("; ".join(unknown))
    for kind in kinds:
        kind(**{name: value for name, value in values.items() if fields[name] is kind})
