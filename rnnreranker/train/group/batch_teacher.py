"""The teacher of labels, asked again while a student learns: about all documents of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.soft import Labels

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels.methods.base import Labeler

PLAIN = LabelParams(normalization="none", boost=1.0, n_max=None, mass="own")  # targets are a softmax of the scores


class BatchTeacher:
    """What a teacher over tokens says of any document, for queries whose labels it has made.

    What a query is asked with, its tokens and the centroids that joined them, is made of the candidates of its labels
    when it is first met, and kept: the collective centroids are reused "for estimating R*_q(p) of any p" (paper 002,
    2.3.1), in its program of every passage of a batch.

    Args:
        labeler: whose labels are learnt, with the tokens of all documents and queries.

    Raises:
        InputError: a labeler whose targets are not the softmax of scores by MaxSim.
    """

    def __init__(self, labeler: Labeler) -> None:
        teacher: Any = getattr(labeler, "teacher", None)
        params = labeler.label_params
        if not hasattr(teacher, "asked") or "tokens" not in teacher.needs:  # as `late`, and `prf` over tokens, have it
            raise _untaught(labeler.name)
        own = {name: value for name, value in params.to_dict().items() if name not in ("temperature", "mass")}
        if differing := [name for name, value in own.items() if value != PLAIN.to_dict()[name]]:
            raise InputError(
                f"batch_teacher: the labels' {differing[0]} is {own[differing[0]]}; expected "
                f"{PLAIN.to_dict()[differing[0]]}, as the targets of a batch are the softmax of the teacher's scores"
            )
        self._teacher, self._temperature = teacher, params.temperature
        self._positives_first = bool(getattr(labeler.params, "positives", False))
        self._asked: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        source = teacher.inputs.tokens
        self.fingerprint = fingerprint(source.fingerprint, labeler.describe())

    def logits(self, pools: Sequence[Labels], docids: Sequence[str]) -> np.ndarray:
        """(B, U) float64: scores of every query with every document, over the temperature.

        Args:
            pools: of the queries, the whole of their labels; docids: of any documents.

        Raises:
            InputError: a document or a query without tokens in the index.
        """
        source = self._teacher.inputs.tokens
        rows = source.rows(list(docids))
        if (rows < 0).any():
            raise InputError(f"{docids[int(np.argmin(rows))]} is not in {source.folder}; use the index of the labels")
        asked = [self._of(pool) for pool in pools]
        offsets = np.cumsum([0, *(len(tokens) for tokens, _ in asked)], dtype=np.int64)
        tokens, weights = (np.concatenate(parts) for parts in zip(*asked, strict=True))
        scores = source.scores(tokens, offsets, rows, self._teacher.threads, weights)
        given: np.ndarray = scores.astype(np.float64) / self._temperature
        return given

    def _of(self, pool: Labels) -> tuple[np.ndarray, np.ndarray]:
        if pool.qid not in self._asked:
            taken = np.flatnonzero(np.isfinite(pool.scores))
            docids = [pool.docids[candidate] for candidate in taken.tolist()]
            known = range(int(pool.positive[taken].sum())) if self._positives_first else ()
            self._asked[pool.qid] = self._teacher.asked(*self._teacher.alone(pool.qid, docids), known)
        return self._asked[pool.qid]


def _untaught(method: str) -> InputError:
    return InputError(
        f"batch_teacher: labels of the method {method} have no teacher over tokens, which can score any document; "
        "expected collective, or teacher late or prf:feedback=colbert"
    )


def teacher_of(metadata: Mapping[str, Any], index: IndexOnDisk, topics: Mapping[str, str]) -> BatchTeacher:
    """The teacher that made a file of labels, on the tokens that it made them from.

    Args:
        metadata: of the labels.
        index: with those tokens; topics: texts of all queries that are trained on.

    Raises:
        InputError: labels of another index, and as `BatchTeacher` and `query_tokens`.
    """
    from rnnreranker.base.method import Inputs, find, make_params
    from rnnreranker.labels.methods.base import make_labeler
    from rnnreranker.parts.tokens.source import query_tokens

    source, method = index.token_vectors, str(metadata["method"])
    try:
        params = make_params("labeler", method, dict(metadata.get("params", {})))
    except InputError as error:
        raise InputError(
            f"batch_teacher: the labels were made with other settings ({error}); make them again"
        ) from None
    if "tokens" not in find("labeler", method).needs_from("vectors", params):
        raise _untaught(method)
    if metadata.get("index") != source.fingerprint:
        raise InputError(f"{index.name}: the labels were not made from its tokens; give the index that they were")
    inputs = Inputs(tokens=source, query_tokens=lambda: query_tokens(source, topics))
    labels = LabelParams(**metadata["labels"])
    return BatchTeacher(make_labeler(method, inputs, params, labels))
