"""The rerankers by name, each with the dataclass of its parameters: what --rerank and `rerank:` in a spec take."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

from rnnreranker.errors import InputError, nearest
from rnnreranker.rerank.jaccard import PlainJaccardReranker
from rnnreranker.rerank.prf import PrfAverageParams, PrfAverageReranker, PrfRocchioParams, PrfRocchioReranker
from rnnreranker.rerank.regularise import RegulariseParams, RegulariseReranker
from rnnreranker.rerank.rnn import RnnReranker
from rnnreranker.rerank.zhong import ZhongParams, ZhongReranker
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    from rnnreranker.rerank.context import ContextReranker
    from rnnreranker.vectors import VectorSource

NO_RERANKING = "none"
PARAMS: dict[str, type] = {
    "rnn": RnnParams,
    "prf-average": PrfAverageParams,
    "prf-rocchio": PrfRocchioParams,
    "regularise": RegulariseParams,
    "jaccard-plain": RnnParams,
    "zhong": ZhongParams,
}
RERANKERS = (*PARAMS, NO_RERANKING)  # what --rerank takes
_RIVALS: dict[str, Any] = {
    kind.name: kind
    for kind in (PrfAverageReranker, PrfRocchioReranker, RegulariseReranker, PlainJaccardReranker, ZhongReranker)
}


def params_of(name: str) -> type:
    """The dataclass of a reranker's parameters.

    Raises:
        InputError: no such reranker (with the nearest names), or "none", which has none.

    >>> params_of("zhong").__name__
    'ZhongParams'
    """
    if name not in PARAMS:
        raise InputError(f"rerank {name}: no such reranker; {nearest(str(name), PARAMS)}")
    return PARAMS[name]


def make_params(name: str, values: dict[str, Any], preset: str | None = None) -> Any:
    """The parameters of a reranker: the values given, before those of a published preset, before the defaults.

    Raises:
        InputError: no such reranker, parameters that it does not have, values out of range, a preset with a reranker
            that takes none.
    """
    kind = params_of(name)
    known = [field.name for field in dataclasses.fields(kind)]
    unknown = [key for key in values if key not in known]
    if unknown:
        raise InputError(f"unknown parameters of {name}: {', '.join(map(str, unknown))}; known: {', '.join(known)}")
    if preset is None:
        return kind(**values)
    if kind is not RnnParams:
        raise InputError(f"preset {preset}: presets are for rnn and jaccard-plain, not for {name}")
    return dataclasses.replace(RnnParams.preset(preset), **values)


def make_reranker(
    name: str,
    vectors: VectorSource,
    params: Any = None,
    *,
    threads: int | None = None,
    missing: Literal["error", "skip"] = "error",
    device: str | None = None,
) -> RnnReranker | ContextReranker:
    """The reranker of a name.

    Args:
        name: one of `PARAMS`.
        vectors: where candidate vectors come from.
        params: of the type `params_of(name)`; None = the defaults.
        threads: worker threads of rnn; the others work in one. Results do not depend on it.
        missing: "error", or "skip" = candidates without a vector are put below the reranked ones.
        device: as `RnnReranker` takes it; of rnn alone.

    Raises:
        InputError: no such reranker, parameters of another one, `missing` is neither, a device with another than rnn.
    """
    kind: Any = params_of(name)
    if params is not None and not isinstance(params, kind):
        raise InputError(f"rerank {name}: got {type(params).__name__}, expected {kind.__name__}")
    if name == "rnn":
        return RnnReranker(vectors, params, threads=threads, missing=missing, device=device)
    if device is not None:
        raise InputError(f"device={device!r}: only rnn takes one, {name} computes with numpy")
    made: ContextReranker = _RIVALS[name](vectors, params, missing=missing)
    return made
