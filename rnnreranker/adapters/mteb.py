"""MTEB: any of its models with rNN, and a task from local BEIR files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, array_of, require
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics
from rnnreranker.methods.rerank.rnn import RnnReranker
from rnnreranker.parts.vectors import QueryVectors
from rnnreranker.parts.vectors.faiss_folder import FaissVectors
from rnnreranker.rnn.hits import params_of
from rnnreranker.rnn.params import RnnParams
from rnnreranker.runs import Run

require("mteb", "a model or a task of MTEB", "'rnnreranker[mteb]'")

from faiss import normalize_L2  # noqa: E402
from mteb import TaskMetadata, get_model  # noqa: E402
from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: E402
from mteb.models import SearchEncoderWrapper, SentenceTransformerEncoderWrapper  # noqa: E402
from mteb.models.model_meta import ScoringFunction  # noqa: E402
from mteb.models.search_encoder_index.search_indexes.faiss_search_index import FaissSearchIndex  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

COMPARED = (ScoringFunction.COSINE, ScoringFunction.DOT_PRODUCT)


class RnnSearch(SearchEncoderWrapper):
    """A model of MTEB that searches and reranks by reciprocal nearest neighbours: `mteb.evaluate(RnnSearch(model),
    tasks)`.

    Its `experiment_kwargs` keep results apart from the model's own. Search is exact, by Faiss. If the task ignores a
    document with the id of the query (`ignore_identical_ids`), the context excludes it.

    Args:
        model: an encoder of MTEB, its name, or a `SentenceTransformer`; its similarity is cosine or the inner product.
        params: rNN's, or a mapping of some; reranks the first `params.context` hits, also of a task's own candidates.
        threads: None = one per core; results do not depend on it.

    Raises:
        InputError: a model of another similarity.
    """

    def __init__(
        self, model: Any, params: RnnParams | Mapping[str, Any] | None = None, *, threads: int | None = None
    ) -> None:
        if isinstance(model, str):
            model = get_model(model)
        elif isinstance(model, SentenceTransformer):
            model = SentenceTransformerEncoderWrapper(model)
        compares = getattr(getattr(model, "mteb_model_meta", None), "similarity_fn_name", "")
        if compares not in COMPARED:
            raise InputError(
                f"model: a {type(model).__name__} that compares by {compares or 'nothing'}; expected an encoder of "
                f"MTEB, its name, or a SentenceTransformer, which compares by {' or '.join(COMPARED)}"
            )
        self._first, self._threads, self.params = _FirstStage(model), threads, params_of(params)
        super().__init__(model, index_backend=self._first)
        changed = sorted(self.params.to_dict().items() - RnnParams().to_dict().items())
        said = {"rnn": ",".join(f"{name}={value}" for name, value in changed) or "default"}
        kept = {**(model.mteb_model_meta.experiment_kwargs or {}), **said}
        self.mteb_model_meta = model.mteb_model_meta.model_copy(update={"experiment_kwargs": kept})

    def search(
        self, queries: Any, *, top_k: int, task_metadata: TaskMetadata, **others: Any
    ) -> dict[str, dict[str, float]]:
        """The scores of the first `top_k` documents of each query, without its own document if the task ignores it."""
        own, first = _leaves_out(task_metadata), self._first
        deep = max(top_k, self.params.context) + own
        hits: dict[str, dict[str, float]] = super().search(queries, top_k=deep, task_metadata=task_metadata, **others)
        for qid, scores in hits.items() if own else ():
            scores.pop(qid, None)
        vectors = QueryVectors(tuple(queries["id"]), first.queries)
        run = Run.from_dict({qid: scores for qid, scores in hits.items() if scores})
        reranker = RnnReranker(FaissVectors(first.index, first.idxs), self.params, threads=self._threads)
        new = reranker.rerank(run, vectors) if len(run) else run
        FaissSearchIndex.clear(first)
        return {qid: dict(new[qid][:top_k]) if qid in new else {} for qid in hits}


class _FirstStage(FaissSearchIndex):
    """MTEB's exact Faiss index, which keeps its vectors and those of the queries until they are reranked."""

    def search(self, embeddings: Any, *given: Any, **named: Any) -> tuple[list[list[float]], list[list[int]]]:
        self.queries = array_of(embeddings, "embeddings").astype(np.float32)
        if self._normalize:
            normalize_L2(self.queries)
        return super().search(embeddings, *given, **named)

    def clear(self) -> None:
        """Nothing yet."""


def local_task(folder: str | Path, name: str | None = None, *, remove_query: bool = True) -> AbsTaskRetrieval:
    """A retrieval task of a folder in BEIR's layout: corpus.jsonl, queries.jsonl, qrels/test.tsv.

    name: of the task, None = the folder's; remove_query: ignores a document with the id of the query, as BEIR does.

    Raises:
        InputError: as it is loaded: missing or unreadable files.
    """
    folder = Path(folder).expanduser()
    title = name or folder.name
    about = TaskMetadata(
        name=title,
        description=f"Documents and judgements of {title}",
        type="Retrieval",
        category="t2t",
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
        dataset={"path": title, "revision": f"local, remove_query={remove_query}"},
    )

    def load(self: AbsTaskRetrieval, num_proc: int | None = None, **others: Any) -> None:
        data = _data_of(folder)
        own = len({*data["queries"]["id"]} & {*data["corpus"]["id"]})
        if own and remove_query and not self.data_loaded:
            notice(
                f"{title}: {own} of {len(data['queries'])} queries have the id of a document, which is left out of "
                "their results, as BEIR does; if it is another text, give local_task(…, remove_query=False)"
            )
        self.dataset = {"default": {"test": data}}
        self.data_loaded = True

    members = {"metadata": about, "load_data": load, "ignore_identical_ids": remove_query}
    return type("LocalTask", (AbsTaskRetrieval,), members)()


def _leaves_out(task: TaskMetadata) -> bool:
    """Whether a task's class ignores a query's own document; models get only its metadata."""
    kinds = [AbsTaskRetrieval]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return any(kind.ignore_identical_ids and getattr(kind, "metadata", None) == task for kind in kinds)


def _data_of(folder: Path) -> Any:
    from datasets import Dataset
    from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData

    by_query = load_qrels(folder).astype({"relevance": int}).groupby("query_id")
    judged = {qid: dict(zip(rows["doc_id"], rows["relevance"].tolist(), strict=True)) for qid, rows in by_query}
    topics = [{"id": qid, "text": text} for qid, text in load_topics(folder).items() if qid in judged]
    documents = [{"id": one.docid, "title": "", "text": one.text} for one in load_documents(folder)]
    return RetrievalSplitData(
        queries=Dataset.from_list(topics),
        corpus=Dataset.from_list(documents),
        relevant_docs={topic["id"]: judged[topic["id"]] for topic in topics},
        top_ranked=None,
    )
