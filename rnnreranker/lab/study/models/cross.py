"""Studies of cross-encoders."""

from __future__ import annotations

from typing import Any

from rnnreranker.lab.study.groups import GroupStudy
from rnnreranker.lab.study.tasks import Task
from rnnreranker.runs import Run


class CrossStudy(GroupStudy):
    """Cross-encoders, tested by reranking the first candidates of a first stage, which is the base."""

    name = "cross"
    whole = True

    def untrained(self, task: Task) -> dict[str, Any]:
        """The values of the first stage."""
        run = self.runs[self.over].head(self.hits)
        return {"values": self.values(run, task)}

    def tested(self, model: str, task: Task) -> dict[str, Any]:
        """The values of its order of the candidates."""
        from rnnreranker.encode.cross.encoder import PairScorer

        scorer = PairScorer.load(model, devices=self.devices, max_length=self.max_length)
        scores_of: dict[str, dict[str, float]] = {}
        for qid in task.test:
            docids = self.runs[self.over].ranked(qid)[: self.hits] if qid in self.runs[self.over] else []
            pairs = [(task.topics[qid], self.documents[docid]) for docid in docids]
            scores_of[qid] = dict(zip(docids, scorer.score(pairs, threads=1).scores.tolist(), strict=True))
        run = Run.from_dict({qid: scores for qid, scores in scores_of.items() if scores})
        return {"values": self.values(run, task)}
