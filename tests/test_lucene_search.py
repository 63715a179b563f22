"""BM25 of Anserini's classes alone: the runs of Pyserini's LuceneSearcher, which is not imported for them."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rnnreranker.base.errors import UnavailableError
from rnnreranker.base.method import Inputs, find
from rnnreranker.data.documents import load_documents
from rnnreranker.data.topics import load_topics
from rnnreranker.methods.feedback.base import Feedback
from rnnreranker.methods.retrieve.bm25 import LuceneParams

pytestmark = [pytest.mark.jvm, pytest.mark.usefixtures("jvm")]
CHINESE = ("cmrc", "drcd")


def made(folder: Path, documents: Iterator[Any], language: str = "en") -> Path:
    from rnnreranker.parts.bm25.part import build_bm25

    (folder / "texts").mkdir(parents=True)
    with (folder / "texts" / "all.jsonl").open("w", encoding="utf-8") as stream:
        for one in documents:
            stream.write(json.dumps({"id": one.docid, "contents": one.text}) + "\n")
    return build_bm25(folder / "texts", folder / "bm25", language)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def pydoc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("pydoc"), iter(load_documents("pydoc")))


def ours(
    folder: Path, topics: Mapping[str, str], feedback: Feedback | None = None, hits: int = 1000, **params: Any
) -> Any:
    inputs = Inputs(topics=topics, words=folder)
    retriever = find("retriever", "bm25")(inputs, LuceneParams(**params), threads=2, feedback=feedback)
    return retriever.retrieve(hits)


def pyserinis(
    folder: Path, topics: Mapping[str, str], feedback: Feedback | None = None, hits: int = 1000, **params: Any
) -> Any:
    from pyserini.search.lucene import LuceneSearcher

    from rnnreranker.runs import Run

    searcher = LuceneSearcher(str(folder))
    searcher.set_bm25(params.get("k1", 0.9), params.get("b", 0.4))
    if "language" in params:
        searcher.set_language(params["language"])
    if feedback is not None:
        feedback.set_words(searcher)
    ranked = searcher.batch_search(list(topics.values()), list(topics), k=hits, threads=1)
    searcher.close()
    return Run.from_dict({qid: {hit.docid: float(hit.score) for hit in ranked.get(qid, ())} for qid in topics})


def same(one: Any, other: Any) -> int:
    """The number of entries of two runs that are equal to the last bit."""
    assert one.qids == other.qids
    for qid in one.qids:
        assert one[qid] == other[qid]  # docids in their order, scores
    return len(one.rows)


@pytest.mark.parametrize(
    ("feedback", "params"),
    [
        (None, {}),
        (None, {"k1": 1.2, "b": 0.75}),
        (("rm3", {}), {}),
        (("rm3", {"fb_docs": 3, "fb_terms": 5, "fb_weight": 0.25, "fb_filter": False}), {}),
        (("rocchio", {}), {}),
        (("rocchio", {"fb_bottom_docs": 2, "fb_alpha": 0.5, "fb_beta": 1.0}), {"k1": 0.82, "b": 0.68}),
    ],
)
@pytest.mark.long
def test_scores_and_ties_are_pyserinis(pydoc: Path, feedback: Any, params: dict[str, Any]) -> None:
    topics = dict(itertools.islice(load_topics("pydoc").items(), 0, None, 4))  # a quarter of them: 60
    topics |= {"long": " ".join(f"word{number}" for number in range(1100)) + " list"}  # more than Lucene's usual limit
    topics |= {"none": "the of and", "odd": "naïve café 東京 🙂 — 3.14!", "unseen": "zzyzx"}
    again = None
    if feedback is not None:
        method = find("feedback", feedback[0])
        again = method(method.Params(**feedback[1]))
    run = ours(pydoc, topics, again, **params)
    assert same(run, pyserinis(pydoc, topics, again, **params)) > 10_000
    steps = [one - other for qid in run.qids for (_, one), (_, other) in itertools.pairwise(run[qid])]
    assert sum(step < 1e-5 for step in steps) > 1000  # ties, which Anserini sets apart in the last digits


@pytest.mark.slow
def test_runs_of_the_collections_at_hand_are_pyserinis(shared: Path, tmp_path: Path) -> None:
    folders = [path for path in sorted((shared / "data" / "beir").iterdir()) if (path / "corpus.jsonl").is_file()]
    assert folders
    for folder in folders:
        params = {"language": "zh"} if folder.name.startswith(CHINESE) else {}
        index = made(tmp_path / folder.name, iter(load_documents(str(folder))), params.get("language", "en"))
        topics = load_topics(str(folder))
        assert same(ours(index, topics, hits=100, **params), pyserinis(index, topics, hits=100, **params)), folder.name


def test_a_damaged_index_is_refused(pydoc: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(pydoc, tmp_path / "searched"))
    postings = next(folder.glob("*.doc"))
    postings.write_bytes(postings.read_bytes()[:400] + bytes(len(postings.read_bytes()) - 420) + bytes(20))
    with pytest.raises(UnavailableError, match=r"searched: cannot be (opened|searched) as a Lucene index \(JVM exc"):
        ours(folder, {"q": "list of random numbers"})
