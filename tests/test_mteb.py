"""MTEB, the real one: models plus rNN, a task from files."""

from __future__ import annotations

import io
import json
import re
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import DOCS
from query_sets import write_index, write_lines

from rnnreranker import QueryVectors, RnnParams, RnnReranker, Run, open_vectors
from rnnreranker.base.errors import DataWarning

mteb = pytest.importorskip("mteb", reason="MTEB is not installed: pip install 'rnnreranker[mteb]'")

from rnnreranker.adapters.mteb import RnnSearch, local_task  # noqa: E402

PAGE = DOCS / "mteb.md"
WORDS = "sort list read file line write number text key value split join map set open".split(" ")  # noqa: SIM905


@pytest.fixture(scope="module")
def model() -> Any:
    return mteb.get_model("mteb/baseline-random-encoder")


def searched(search: Any, task: Any, top_k: int = 80, **given: Any) -> dict[str, dict[str, float]]:
    task.load_data()
    data = task.dataset["default"]["test"]
    where = {"task_metadata": task.metadata, "hf_split": "test", "hf_subset": "default", "num_proc": None}
    search.index(data["corpus"], **where, encode_kwargs={})
    found: dict[str, dict[str, float]] = search.search(data["queries"], top_k=top_k, **where, encode_kwargs={}, **given)
    return found


class Kept:
    """An encoder that keeps what it encodes, in the order of the texts."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.vectors: list[np.ndarray] = []
        self.mteb_model_meta, self.similarity = model.mteb_model_meta, model.similarity

    def encode(self, *given: Any, **others: Any) -> np.ndarray:
        vectors = np.asarray(self._model.encode(*given, **others), dtype=np.float32)
        self.vectors.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        return vectors


@pytest.fixture(scope="module")
def own(module_path: Path) -> Path:
    """Forty documents, six of which are queries too, as in ArguAna."""
    folder = module_path / "my-data"
    (folder / "qrels").mkdir(parents=True)
    draws = np.random.default_rng(4)
    texts = [" ".join(draws.choice(WORDS, 8)) for _ in range(40)]
    for name, count in (("corpus", 40), ("queries", 6)):
        lines = (json.dumps({"_id": f"d{at}", "title": "", "text": texts[at]}) for at in range(count))
        write_lines(folder / f"{name}.jsonl", lines)
    rows = (f"d{at}\td{at + 10}\t1" for at in range(6))
    write_lines(folder / "qrels" / "test.tsv", ["query-id\tcorpus-id\tscore", *rows])
    return folder


@pytest.mark.parametrize("top_ranked", [False, True])
@pytest.mark.parametrize("remove_query", [False, True])
def test_it_orders_as_our_reranker_does(
    top_ranked: bool, remove_query: bool, own: Path, model: Any, tmp_path: Path
) -> None:
    """Without a query's own document if the task ignores it, as BEIR does."""
    kept, params, task = Kept(model), RnnParams(k=5, context=20), local_task(own, remove_query=remove_query)
    with pytest.warns(DataWarning, match="6 of 6 queries have the id .* as BEIR") if remove_query else nullcontext():
        task.load_data()
    given = {f"d{at}": [f"d{row}" for row in range(30)] for at in range(6)} if top_ranked else None
    scores = searched(RnnSearch(kept, params), task, top_ranked=given)
    documents, queries = kept.vectors
    kept_rows = [[at for at in range(30 if given else 40) if at != row or not remove_query] for row in range(6)]
    products = {
        f"d{row}": {f"d{at}": float(documents[at] @ queries[row]) for at in rows} for row, rows in enumerate(kept_rows)
    }
    want = RnnReranker(open_vectors(write_index(tmp_path, documents)), params).rerank(
        Run.from_dict(products), QueryVectors(list(products), queries)
    )
    for qid in products:
        assert sorted(scores[qid], key=scores[qid].__getitem__, reverse=True) == [docid for docid, _ in want[qid]]
    few = searched(RnnSearch(model, params), task, 7, top_ranked=given)
    assert all({*few[qid]} == {docid for docid, _ in want[qid][:7]} for qid in products)


@pytest.mark.parametrize(("name", "leaves_out"), [("ArguAna", True), ("NFCorpus", False)])
def test_tasks_of_mteb_say_whether_a_querys_own_document_counts(
    name: str, leaves_out: bool, own: Path, model: Any
) -> None:
    (task := local_task(own, remove_query=False)).load_data()
    task.metadata = mteb.get_task(name).metadata
    scores = searched(RnnSearch(model), task)
    assert all((qid in hits) != leaves_out for qid, hits in scores.items())


def test_scores_are_those_of_beir(own: Path, model: Any) -> None:
    """Whose rule is to drop the query's own document from the results, before measures are taken."""
    task = local_task(own, "Arguments")
    (result,) = mteb.evaluate(RnnSearch(model), task, cache=None, raise_error=True).task_results
    found = searched(RnnSearch(model), task)
    places = {qid: sorted(hits, key=hits.__getitem__, reverse=True) for qid, hits in found.items()}
    gains = [1 / np.log2(2 + places[f"d{at}"].index(f"d{at + 10}")) for at in range(6)]
    expected = np.mean([gain if gain >= 1 / np.log2(11) else 0.0 for gain in gains])
    assert result.get_score() == pytest.approx(expected, abs=1e-5)


@pytest.mark.long
def test_mock_run_passes_all_tasks_of_texts() -> None:
    results = mteb.mock_run(RnnSearch("mteb/baseline-random-encoder", RnnParams(k=3)))
    ran = {name: status for name, status in results.items() if status is not None}
    texts = [name for name in ran if not re.search("Image|Video|Audio|Any2Any|VLM|Vidore", name, re.IGNORECASE)]
    assert len(texts) >= 9
    assert all(type(ran[name]).__name__ == "TaskResult" for name in texts), results.to_markdown()


@pytest.mark.long
def test_the_page_runs_as_printed(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own.parent)
    said = io.StringIO()
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with redirect_stdout(said):
        exec(compile(block, str(PAGE), "exec"), {})
    lines = [line for line in said.getvalue().splitlines() if re.search(r" 0\.\d+$", line)]
    assert len(lines) == 3
    pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)", (PAGE.parents[1] / "constraints.txt").read_text(), re.MULTILINE))
    assert f"mteb {pinned['mteb']}." in PAGE.read_text(encoding="utf-8")
