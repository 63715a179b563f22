"""Studies of sparse encoders."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnreranker.lab.study.groups import GroupStudy
from rnnreranker.lab.study.tasks import Task

FACTOR = 100  # weights of words are searched as whole numbers of hundredths, as an index keeps them


class SparseStudy(GroupStudy):
    """Sparse encoders, tested by searching the collection, which each encodes; the one as it is, too."""

    name = "sparse"
    whole = True

    def tested(self, model: str, task: Task) -> dict[str, Any]:
        """The values of its search, and `words`: what its weights cost, see `word_use`."""
        from rnnreranker.encode.sparse.encoder import SparseEncoder
        from rnnreranker.methods.retrieve.base import run_of_rows
        from rnnreranker.parts.impacts.source import whole, word_use
        from rnnreranker.parts.postings import best_products

        encoder = SparseEncoder.load(model, devices=self.devices, max_length=self.max_length)
        documents = whole(encoder.encode_documents(list(self.documents.values()), threads=1), FACTOR)
        queries = whole(encoder.encode_queries([task.topics[qid] for qid in task.test], threads=1), FACTOR, "queries")
        docids = list(self.documents)
        docid_ranks = np.argsort(np.argsort(np.array(docids, dtype=object).astype(str)))
        turned = documents.astype(np.float64).T.tocsr()
        hits = best_products(queries.astype(np.float64), [(0, turned)], self.hits, docid_ranks, 1)
        run = run_of_rows(task.test, docids, [scores for scores, _ in hits], [rows for _, rows in hits])
        counts = np.bincount(documents.indices, minlength=documents.shape[1])
        return {
            "values": self.values(run, task),
            "words": word_use(queries, counts, len(docids)),
        }
