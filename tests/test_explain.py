"""The explanation of one query: its sums, its links, its page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from query_sets import write_index, write_queries, write_texts
from refusals import refusal

from rnnreranker import RnnParams, Run, rnn_similarity
from rnnreranker.data.document import Document
from rnnreranker.parts.texts import CorpusWriter
from rnnreranker.search.__main__ import main
from rnnreranker.search.explain.neighbourhood import Neighbourhood, neighbourhood
from rnnreranker.search.explain.page import explanation, picture

SETTINGS = [
    RnnParams(),
    RnnParams(k=4, k_exp=1, tau=0.0, lam=0.0),
    RnnParams(k=5, k_exp=2, tau=1.0, scale="none", weight="exp", weight_scale=0.3, variant="paper"),
    RnnParams(k=6, scale="none", normalize="max"),  # similarities of both signs, so weights of both signs
    RnnParams(k=3, weight="binary"),
    RnnParams(probes=4, rank_weight=0.5, run_weight=2.0, query_weight=0.0, rank_constant=60.0),
    RnnParams.preset("vectors"),
]
VECTORS = RnnParams.preset("vectors")


def chance(count: int = 25, seed: int = 3) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """A query, its candidates by similarity, and their names."""
    rng = np.random.default_rng(seed)
    query, candidates = rng.normal(size=8).astype(np.float32), rng.normal(size=(count, 8)).astype(np.float32)
    candidates = candidates[np.argsort(-(candidates @ query))]
    return query, candidates, [f"d{number}" for number in range(count)]


def check_sums(found: Neighbourhood, expected: np.ndarray) -> None:
    """Parts add up to the expected scores, shared neighbours to Jaccard similarities."""
    for one in found.candidates:
        assert one.score == pytest.approx(expected[one.element - 1], abs=1e-5)
        assert one.score == pytest.approx(sum(one.amounts), abs=1e-12)
        for part, jaccard in zip(found.parts, one.values, strict=True):
            if part.kind not in ("jac", "near") or part.probe == one.element:
                continue
            shared = found.shared(one.element, part.probe)
            amounts = [line.amount for line in shared]
            assert sum(amounts) == pytest.approx(jaccard, abs=1e-9)
            if jaccard:
                assert sum(line.share for line in shared) == pytest.approx(1.0)
            assert amounts == sorted(amounts, reverse=True)


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_scores_are_those_of_rnn_similarity_and_shared_neighbours_add_up(params: RnnParams) -> None:
    query, candidates, docids = chance()
    found = neighbourhood(query, candidates, docids, params)
    expected = rnn_similarity(query[None], candidates[None], params)[0]
    assert [one.after for one in found.candidates] == list(range(1, len(docids) + 1))
    scores = [one.score for one in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert [part.probe for part in found.parts if part.kind in ("jac", "near")] == list(found.probes)
    check_sums(found, expected)
    for one in found.candidates:
        assert (one.docid, one.before) == (docids[one.element - 1], one.element)
    assert any(found.shared(one.element) for one in found.candidates)


def test_links_of_a_context_worked_out_by_hand() -> None:
    """At 0, 10, 25 and 70 degrees with k = 1 the nearest are 1, 0, 1 and 2: only 0 and 1 chose each other.

    In the list of each stands itself too, so R = {0,1}, {0,1}, {2}, {3}. With binary weights the rows of 0 and 1 are
    one half each on 0 and 1; J(0, 1) = 1, half of it by the query and half by the document itself, and J = 0 elsewhere.
    """
    angles = np.radians([0, 10, 25, 70])
    query, *rest = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    params = RnnParams(
        k=1, k_exp=1, tau=0.0, lam=0.5, weight="binary", rank_weight=0, run_weight=0, probes=1, smoothing=0
    )
    found = neighbourhood(query, np.array(rest), ["a", "b", "c"], params)
    assert found.links() == [(0, 1, 0.5, "query", False)]
    assert found.reciprocal == found.steps.sets == [{0, 1}, {0, 1}, {2}, {3}]
    assert (found.candidates[0].docid, found.candidates[0].values) == ("a", [1.0, 1.0])
    assert [(line.element, line.amount, line.share) for line in found.shared(1)] == [(0, 0.5, 0.5), (1, 0.5, 0.5)]
    assert found.shared(2) == found.shared(3) == []


def test_drawn_links_are_reciprocal_and_wider_with_more_weight() -> None:
    found = neighbourhood(*chance(40), RnnParams(k=6, tau=1.0))
    lists = found.steps.lists
    picture_of = picture(found, "wide")["links"]
    links, share = [one["of"] for one in picture_of], {one["of"]: one["share"] for one in picture_of}
    assert {(link.kind, link.extended) for link in links} == {
        *(("query", True), ("query", False), ("near", True), ("near", False), ("between", False))
    }
    assert len({frozenset((link.first, link.second)) for link in links}) == len(links)
    for link in links:
        mutual = link.second in lists[link.first] and link.first in lists[link.second]
        assert mutual == (not link.extended)
    assert {link.second for link in links if link.kind == "near" and link.first == 1} == found.steps.sets[1] - {0, 1}
    own = sorted((link for link in links if link.first == 0), key=lambda link: link.weight)
    assert [share[link] for link in own] == sorted(share[link] for link in own)
    assert share[own[-1]] == 1.0


def test_the_seven_parts_of_the_default_are_what_the_formula_says() -> None:
    """s* = lam (mm(1 / (c + rank)) + mm(run score) + mm(q.d)) / 3 + (1 - lam) [J(q, i) + J(c1, i) + J(c2, i)] / 3,
    and of it (1 - a) s* + a mean of s* over the nearest.
    """
    query, candidates, docids = chance()
    mixed = np.random.default_rng(1).permutation(len(docids))
    base = np.sort(np.random.default_rng(2).random(len(docids)))[::-1]
    found = neighbourhood(query, candidates[mixed], docids, RnnParams(), base=base)
    assert [(part.kind, part.probe) for part in found.parts] == [
        *(("rank", 0), ("run", 0), ("geo", 0), ("jac", 0), ("near", 1), ("near", 2), ("lent", 0))
    ]
    assert [part.weight for part in found.parts] == pytest.approx([0.15] * 3 + [0.1] * 3 + [0.25])
    expected = rnn_similarity(query[None], candidates[mixed][None], RnnParams(), base=base[None])[0]
    similar = candidates[mixed] @ query
    by_element = {one.element: one.mixed for one in found.candidates}
    for one in found.candidates:
        place = one.element - 1
        rank, run, geo, jac, near, second, lent = one.values
        assert one.score == pytest.approx(expected[place], abs=1e-5)
        assert rank == pytest.approx((1 / (11 + place) - 1 / 35) / (1 / 11 - 1 / 35))
        assert run == pytest.approx((base[place] - base[-1]) / (base[0] - base[-1]))
        assert geo == pytest.approx((similar[place] - similar.min()) / np.ptp(similar), abs=1e-5)
        assert {1: near, 2: second}.get(one.element, 1.0) == 1.0
        assert one.mixed == pytest.approx(0.2 * (rank + run + geo) + 0.4 / 3 * (jac + near + second))
        others = np.delete(np.arange(len(docids)), place)
        nearest = others[np.argsort(-(candidates[mixed][others] @ candidates[mixed][place]), kind="stable")][:15]
        assert [element - 1 for element in one.nearest] == nearest.tolist()
        assert lent == pytest.approx(np.mean([by_element[element] for element in one.nearest]))
        assert one.run_score == base[place]


class Links(HTMLParser):
    """Collects tags, ids, and every address that a browser would follow."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href", "srcset", "data", "action"):
                self.addresses.append(value or "")


def test_page_is_self_contained_and_its_links_lead_somewhere() -> None:
    found = neighbourhood(*chance(40), RnnParams())
    page = explanation(found, qid="q1", query="some text", texts={"d3": "a first line"}, source="index x")
    read = Links()
    read.feed(page)
    assert "://" not in page
    assert "url(//" not in page
    assert "@import" not in page
    assert not {"script", "link", "img", "iframe"} & set(read.tags)
    assert len(read.ids) == len(set(read.ids))
    assert read.addresses
    assert {address[1:] for address in read.addresses} <= set(read.ids)
    assert all(address.startswith("#") for address in read.addresses)
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(read.ids)
    moved = [one for one in found.candidates if one.moved]
    assert read.tags.count("details") == len(moved) + 1 > 11  # the first ten, then the picture, then all numbers
    first, rest = page.split('<svg class="net wide"')
    assert re.findall(r'<details id="d(\d+)">', first) == [str(one.element) for one in moved[:10]]
    assert '<table class="ranks">' in rest.split('<details class="numbers">')[1]
    assert read.tags.count("svg") > 2
    assert "a first line" in page
    assert "prefers-color-scheme" in page


def test_relevant_documents_are_marked_and_a_long_query_is_a_paragraph() -> None:
    found = neighbourhood(*chance(), RnnParams())
    text = "so many words " * 12
    page = explanation(found, qid="q1", query=text, texts={}, grades={"d0": 1, "d1": 2, "d2": 0}, relevant_from=2)
    assert f'<p class="query">{text}</p>' in page
    rows = dict(re.findall(r'<span class="docid">(d\d+)</span><span class="grade[ a-z]*">(.*?)</span></td>', page))
    assert rows == {"d0": "not relevant, grade 1", "d1": "★ relevant, grade 2", "d2": "not relevant, grade 0"}
    assert page.count('<text class="star halo"') == 2 * any(one.docid == "d1" for one in found.candidates[:14])
    assert "grade" not in explanation(found, qid="q1", query="few words", texts={}).split("</style>")[1]


def test_markup_in_ids_and_texts_is_text() -> None:
    query, candidates, docids = chance()
    bad = "<script>alert('x')</script>"
    docids[:3] = [f"{bad}0", f'"><b>{bad}', "</style></svg>" + bad]
    texts = dict.fromkeys(docids, f"text {bad} & more")
    page = explanation(
        neighbourhood(query, candidates, docids, RnnParams()), qid=bad, query=bad, texts=texts, source=bad
    )
    read = Links()
    read.feed(page)
    assert not {"script"} & set(read.tags)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.count("</style>") == 1


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index of thirty documents, three topics and their vectors."""
    folder = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(11)
    docids = [f"d{i:02d}" for i in range(30)]
    with CorpusWriter(write_index(folder / "index", rng.normal(size=(30, 8)), docids)) as corpus:
        for i, docid in enumerate(docids):
            corpus.add(Document(docid, f"number {i} <i>\nsecond line"))
    topics = {"q1": "river boat", "q2": "bread oven", "q/3": "garden rose"}
    write_queries(folder / "queries.npy", topics, rng.normal(size=(3, 8)))
    write_texts(folder / "topics.tsv", topics)
    return folder


def flags(folder: Path, *more: str) -> list[str]:
    base = ["--index", str(folder / "index"), "--encoded-queries", str(folder / "queries.npy")]
    return [*base, "--topics", str(folder / "topics.tsv"), *more]


def table_of(page: str) -> tuple[list[float], list[tuple[str, str]]]:
    """The scores of a page, its docids with their texts."""
    scores = re.findall(r'<td class="n score">(.*?)</td>', page)
    rows = re.findall(r'<tr id="r\d+">.*?<span class="docid">(.*?)</span><span class="text">(.*?)</span>', page)
    return list(map(float, scores)), rows


def test_command_writes_the_page_of_a_topic(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "why.html"
    out = tmp_path / "run.txt"
    more = ["--explain", "q2", "--explain-output", str(page), "--context", "12", "--output", str(out)]
    assert main(flags(tiny, *more)) == 0
    text = page.read_text()
    scores, rows = table_of(text)
    assert "bread oven" in text
    assert "river boat" not in text
    assert str(page) in capsys.readouterr().err
    ranked = Run.read(out).ranked("q2")[:12]
    assert scores == pytest.approx([score for _, score in Run.read(out)["q2"][:12]], abs=6e-5)
    assert [docid for docid, _ in rows] == ranked
    assert dict(rows)[ranked[0]] == f"number {int(ranked[0][1:])} &lt;i&gt;"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--explain", "q9"], r"--explain q9: no such query in .*topics\.tsv, known: q/3, q1, q2"),
        (
            ["--explain", "q1", "--rerank", "none"],
            "--explain shows what rnn does with vectors or a graph: not with --rerank none",
        ),
        (["--explain", "q1", "--explain-output", "/no/such/folder/x.html"], "cannot be written"),
        (["--output", "x", "--explain-output", "x.html"], "--explain-output needs --explain QID"),
    ],
)
def test_errors_come_before_any_work(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)

    def fail(*_: object) -> None:
        raise AssertionError("the index was opened")

    monkeypatch.setattr("rnnreranker.search.pipeline.open_index", fail)
    with refusal(message):
        main(flags(tiny, *more))
    assert not list(tmp_path.iterdir())
