"""Labels by a teacher: whatever reranker scores a query's candidates says how relevant they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.labels.judged import JudgedContext
from rnnreranker.labels.methods.base import ContextLabeler
from rnnreranker.rerank.base import Candidates, Query
from rnnreranker.settings import Params, context_setting, setting


@dataclass(frozen=True)
class TeacherParams(Params):
    """Settings of labels by a teacher."""

    teacher: str = setting("encoder", "a reranker; its scores are the labels' scores", tunable=False)
    teacher_params: str | None = setting(None, "YAML file of the teacher's parameters", tunable=False)
    context: int = context_setting()


class TeacherLabeler(ContextLabeler):
    """The scores of a reranker, the same for every positive, transformed as those of evidence are.

    Normalisation none, boost 1 and no n_max make the targets the softmax of the scores.

    Args and Raises: as `Labeler`; inputs.teacher: a `Reranker`, which brings its own inputs. InputError also for a
    teacher that reads scores of the run: a positive that is put in has none.
    """

    name = "teacher"
    needs = frozenset({"teacher"})
    Params = TeacherParams
    params: TeacherParams

    def describe(self) -> dict[str, Any]:
        """What goes into the metadata of the labels."""
        teacher = self.inputs.teacher
        return super().describe() | {"teacher": {"name": teacher.name} | teacher.params.to_dict()}

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
        texts = [inputs.texts[docid] for docid in docids] if "texts" in needs else None
        candidates = Candidates(np.array(docids, dtype=object), vectors=vectors, texts=texts)
        found: np.ndarray = teacher.scores(query, candidates)
        return found

    @cached_property
    def _places(self) -> dict[str, int]:
        return {qid: place for place, qid in enumerate(self.inputs.teacher.inputs.query_vectors.qids)}

    def _source(self) -> Any:
        return self.inputs.teacher.inputs.vectors if "vectors" in self.inputs.teacher.needs else None
