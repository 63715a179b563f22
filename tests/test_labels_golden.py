"""Label scores and training targets against the numbers of the authors' implementation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnnreranker.labels import LabelParams
from rnnreranker.labels.similarity import VectorSimilarity
from rnnreranker.labels.targets import aggregated, redistributed, transformed
from rnnreranker.rnn import RnnParams

CASES = ("c01", "c02", "c03", "c05", "c06", "c08", "c10", "c11", "c13", "c15", "c16", "c17", "c19", "c20")
SETS = ("p1", "p2", "p3")


def load(shared: Path, case: str) -> tuple[Any, dict[str, Any]]:
    z = np.load(next((shared / "golden").glob(f"{case}_*.npz")))
    return z, json.loads(str(z["params"]))


def rnn_params(p: dict[str, Any]) -> RnnParams:
    return RnnParams(
        k=p["k"],
        k_exp=p["k_exp"],
        tau=p["trust_factor"],
        lam=p["sim_mixing_coef"],
        weight=p["weight_func"],
        weight_scale=p["weight_func_param"],
        normalize=None if p["normalize"] == "None" else p["normalize"],
        scale="none",
    )


def context(z: Any, which: str) -> tuple[np.ndarray, np.ndarray]:
    """Ids and vectors of a label context, positives first."""
    places = {int(docid): vector for docid, vector in zip(z["doc_ids"], z["docs"], strict=True)}
    places |= {int(docid): vector for docid, vector in zip(z["extra_doc_ids"], z["extra_docs"], strict=True)}
    ids = z[f"sl_{which}_ids"]
    return ids, np.stack([places[int(docid)] for docid in ids])


def scores_of(z: Any, which: str, params: RnnParams) -> np.ndarray:
    _, vectors = context(z, which)
    stacked = np.concatenate([z["query"][None], vectors]).astype(np.float32)[None]
    similarity = VectorSimilarity(np.array([len(vectors)]), params, None, stacked)
    return similarity.mixed(np.arange(1, len(z[f"sl_{which}_pos_ids"]) + 1))[0]


@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize("case", [case for case in CASES if case != "c13"])
def test_scores_equal_the_authors(shared: Path, case: str, which: str) -> None:
    z, p = load(shared, case)
    found = scores_of(z, which, rnn_params(p))
    expected = z[f"sl_{which}_final"][:, 1:]
    sound = np.isfinite(expected)
    assert sound.any()
    np.testing.assert_allclose(found[sound], expected[sound], rtol=2e-4, atol=2e-5)
    grades = z[f"sl_{which}_pos_rel"].astype(float)
    for how in ("mean", "max", "sum"):
        np.testing.assert_allclose(aggregated(found, grades, how), z[f"sl_{which}_{how}"], rtol=2e-4, atol=5e-5)
    by_candidate = np.zeros(found.shape[1])
    by_candidate[: len(grades)] = grades
    shared_out = redistributed(
        aggregated(found, grades, "mean"),
        by_candidate,
        LabelParams(redistribute="fully", compat="coder"),
        literal=True,
    )
    np.testing.assert_allclose(shared_out, z[f"sl_{which}_fully"], rtol=5e-4, atol=1e-5)


def label_params(config: dict[str, Any]) -> LabelParams:
    return LabelParams(
        normalization=config["label_normalization"] or "none",
        boost=config["boost_factor"],
        n_max=config["max_inj_relevant"],
        include_level=config["level"],
        compat="coder",
    )


@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize("case", CASES)
def test_targets_equal_the_authors(shared: Path, case: str, which: str) -> None:
    z, p = load(shared, case)
    labels = z[f"sl_{which}_mean"].astype(np.float64)
    ids = z[f"sl_{which}_ids"].tolist()
    positive = np.isin(ids, z[f"sl_{which}_pos_ids"])
    compared = 0
    for name, config in p["train_configs"].items():
        key = f"tr_{which}_{name}"
        if f"{key}_ids" not in z.files:
            continue
        values = transformed(labels, positive, label_params(config))
        expected = dict(zip(z[f"{key}_ids"].tolist(), z[f"{key}_labels"].tolist(), strict=True))
        found = dict(zip(ids, values.tolist(), strict=True))
        lost = {docid: value for docid, value in expected.items() if docid not in found and np.isfinite(value)}
        assert lost == {}
        np.testing.assert_allclose(
            [found[docid] for docid in ids], [expected.get(docid, -np.inf) for docid in ids], rtol=3e-3, atol=1e-3
        )
        compared += 1
    assert compared
