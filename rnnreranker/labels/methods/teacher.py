"""Labels by a teacher: whatever reranker scores a query's candidates says how relevant they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.command import say
from rnnreranker.errors import InputError
from rnnreranker.labels.judged import Judged, JudgedContext
from rnnreranker.labels.methods.base import ContextLabeler
from rnnreranker.rerank.base import Candidates, Query
from rnnreranker.settings import Params, context_setting, setting

if TYPE_CHECKING:
    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.runs import Run


@dataclass(frozen=True)
class TeacherParams(Params):
    """Settings of labels by a teacher."""

    teacher: str = setting("encoder", "a reranker; its scores are the labels' scores", tunable=False)
    teacher_model: str | None = setting(
        None, "the model of a teacher that has one: a cross-encoder, several joined by commas, a scorer", tunable=False
    )
    teacher_params: str | None = setting(None, "YAML file of the teacher's parameters", tunable=False)
    context: int = context_setting()


class TeacherLabeler(ContextLabeler):
    """The scores of a reranker, the same for every positive whatever its grade, transformed as those of evidence are.

    Normalisation none, boost 1 and no n_max make the targets the softmax of the scores, so that differences of their
    logarithms are margins of the scores: what distillation by Kullback-Leibler divergence and by margins learns from.

    Args and Raises: as `Labeler`; inputs.teacher: a `Reranker`, which brings its own inputs. InputError also for a
    teacher that reads scores of the run: a positive that is put in has none.
    """

    name = "teacher"
    needs = frozenset({"teacher"})
    Params = TeacherParams
    params: TeacherParams

    def describe(self) -> dict[str, Any]:
        """What goes into the metadata of the labels."""
        return super().describe() | {"teacher": self.inputs.teacher.describe()}

    def infer_from(self, run: Run, judged: Judged) -> tuple[SoftLabels, int]:
        """See `Labeler.infer_from`; says what the teacher has to remark."""
        found = super().infer_from(run, judged)
        if remark := self.inputs.teacher.remark():
            say(remark)
        return found

    def scores(self, one: JudgedContext) -> np.ndarray:
        """(n,) float64: what the teacher gives the candidates, all beside each other."""
        teacher = self.inputs.teacher
        needs, inputs = teacher.needs, teacher.inputs
        if teacher.reads_scores:
            raise InputError(f"teacher {teacher.name}: reads scores of the run, which positives put in have not")
        docids, vector, vectors = one.docids[: one.size], None, None
        if "query vectors" in needs:
            vector = inputs.query_vectors.vectors[self._places[one.qid]]
        if "vectors" in needs:
            vectors = inputs.vectors.fetch(one.rows)
        query = Query(one.qid, inputs.topics[one.qid] if "topics" in needs else None, vector)
        texts = _texts(one.qid, docids, inputs.texts) if "texts" in needs else None
        candidates = Candidates(np.array(docids, dtype=object), vectors=vectors, texts=texts)
        found: np.ndarray = teacher.scores(query, candidates)
        return found

    @cached_property
    def _places(self) -> dict[str, int]:
        return {qid: place for place, qid in enumerate(self.inputs.teacher.inputs.query_vectors.qids)}

    @property
    def source_of_rows(self) -> Any:
        """See `Labeler.source_of_rows`."""
        return self.inputs.teacher.inputs.vectors if "vectors" in self.inputs.teacher.needs else None


def _texts(qid: str, docids: Sequence[str], texts: Mapping[str, str]) -> list[str]:
    if lost := [docid for docid in docids if docid not in texts]:
        raise InputError(
            f"query {qid}: {len(lost)} of its {len(docids)} candidates and positives have no text (first: "
            f"{', '.join(lost[:3])}); give the index that the run was made from, or --documents that have them"
        )
    return [texts[docid] for docid in docids]
