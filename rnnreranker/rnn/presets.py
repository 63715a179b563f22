"""Published and named parameters of rNN reranking, where they differ from the default of `RnnParams`."""

from __future__ import annotations

from typing import Any

VECTORS_ALONE: dict[str, Any] = {"rank_weight": 0.0, "run_weight": 0.0, "probes": 1, "smoothing": 0.0}


def _published(context: int, k: int, k_exp: int, tau: float, lam: float) -> dict[str, Any]:
    return {"k": k, "k_exp": k_exp, "tau": tau, "lam": lam, "scale": "none", "context": context, **VECTORS_ALONE}


PRESETS: dict[str, dict[str, Any]] = {  # but for the first two: paper 000, Table 5
    "mixture": {"smoothing": 0.0},
    "vectors": {"k_exp": 3, **VECTORS_ALONE},
    "tas-b": _published(60, 21, 3, 0.0, 0.451),
    "coder-tas-b": _published(60, 21, 3, 0.0, 0.451),
    "cocondenser": _published(53, 21, 5, 0.128, 0.469),
    "coder-cocondenser": _published(63, 19, 8, 0.5, 0.473),
}
