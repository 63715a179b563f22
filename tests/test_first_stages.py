"""The table of methods over first stages: its cells from records, one family of tests, its pages and pictures."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from page_data.first_stages import LAYOUTS, METHODS, Collection, stage_table

from rnnreranker.base.errors import InputError
from rnnreranker.base.record import Record, write_records
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics
from rnnreranker.regress.pages.prose import write_prose
from rnnreranker.regress.records import Figures
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import specs_folder

DOCS = Path(__file__).resolve().parent.parent / "docs"
BENCHMARK = Record("benchmark", "", "performance", {"parts": {}}, date="2026-01-01")
CRANFIELD, SCIFACT = LAYOUTS["first stages"].collections[:2]


def run(where: Collection, name: str, ndcg: float, recall: float, against: str = "", p: float = 1.0) -> Record:
    """A record of a run that lies .25 above what it is compared with, .01 to both sides."""
    outcome: dict[str, Any] = {"query_set": where.query_set, "values": {"trec": {"nDCG@10": ndcg, "R@100": recall}}}
    if against:
        above = {"baseline": against, "difference": ndcg - 0.5, "low": ndcg - 0.51, "high": ndcg - 0.49, "p": p}
        of_recall = {"baseline": against, "difference": recall - 0.5, "low": recall - 0.51, "high": recall - 0.49}
        outcome["differences"] = {"nDCG@10": above, "R@100": of_recall}
    return Record("run", where.spec, name, outcome, date="2026-01-01")


RECORDS = [
    *(run(where, "dense", 0.5, 0.5) for where in (CRANFIELD, SCIFACT)),
    run(CRANFIELD, "dense-rnn", 0.6, 0.5, "dense", 0.01),
    run(CRANFIELD, "dense-rnn-mixture", 0.4, 0.5, "dense", 0.04),
    run(CRANFIELD, "dense-prf", 0.7, 0.75, "dense", 0.03),
    run(SCIFACT, "dense-rnn", 0.495, 0.5, "dense", 0.9),
    run(SCIFACT, "dense-rnn-mixture", 0.5, 0.5, "dense", 1.0),
]


def test_the_cells_are_one_family_of_tests() -> None:
    table = stage_table(Figures(RECORDS), "first stages")
    found = {(cell.collection, cell.method): cell for cell in table.cells}
    assert len(found) == 5
    assert [found["Cranfield", name].p_holm for name in ("rnn", "prf", "rnn-mixture")] == pytest.approx(
        [0.05, 0.12, 0.12]  # Holm: .01 x 5, .03 x 4, .04 x 3
    )
    assert found["Cranfield", "prf"].recall_gain["difference"] == 0.25
    assert table.methods("dense") == ["rnn", "rnn-mixture", "prf"]
    assert [stage.id for stage in table.with_methods(["rnn", "rnn-mixture"])] == ["dense"]


def test_cells_are_taken_together() -> None:
    table = stage_table(Figures(RECORDS), "first stages")
    new, before = table.over("rnn", "dense"), table.over("rnn-mixture", "dense")
    assert (new.base, new.gain, before.gain) == pytest.approx((0.5, 0.0475, -0.05))
    assert (new.worst.collection, before.worst.collection) == ("SciFact", "Cranfield")
    assert [len(cells) for cells in (new.below, new.surely_below, new.surely_above)] == [1, 0, 1]
    assert (new.lost, before.lost) == ([], [])  # p .04 becomes .12
    assert [len(cells) for cells in (before.below, before.surely_below, before.surely_above)] == [1, 1, 0]
    with pytest.raises(InputError, match="no record of expand-rnn over dense; measure it with --record"):
        table.over("expand-rnn", "dense")
    assert table.find("rnn", "dense", "SciFact").value == 0.495
    with pytest.raises(InputError, match="no record of prf over dense on SciFact; measure it with --record"):
        table.find("prf", "dense", "SciFact")
    assert not table.complete
    with pytest.raises(InputError, match="no record of rnn over any first stage"):
        table.over("rnn", without=["dense"])


def test_a_run_that_was_compared_with_something_else_is_no_cell() -> None:
    other = run(CRANFIELD, "dense-jaccard-plain", 0.6, 0.5, "bm25")
    alone = run(CRANFIELD, "dense-rnn-tas-b", 0.6, 0.5)
    assert stage_table(Figures([RECORDS[0], other, alone]), "first stages").cells == ()


def test_the_page_and_its_picture_are_made_of_records(tmp_path: Path) -> None:
    shutil.copytree(DOCS / "source" / "page_data", tmp_path / "docs" / "source" / "page_data")
    source = tmp_path / "docs" / "source" / "page.md.j2"
    source.write_text(
        '{% set table = first_stages("first stages") %}'
        '{{ stage_methods["rnn"] }} {{ table.over("rnn").gain | round(4) }}\n'
    )
    (tmp_path / "results").mkdir()
    write_records(tmp_path / "results" / "x.json", RECORDS)
    files = write_prose(source.parent, tmp_path / "docs", tmp_path / "results")
    assert files[0].read_text(encoding="utf-8").splitlines()[1] == "rNN, the default 0.0475"
    (picture,) = (path for path in files if path.suffix == ".svg")
    assert picture == tmp_path / "docs" / "first-stages" / "first-stages.svg"
    drawn = picture.read_bytes()
    write_prose(source.parent, tmp_path / "docs", tmp_path / "results")
    assert picture.read_bytes() == drawn


def graph_records(gains: dict[str, float], layout: str = "graph") -> list[Record]:
    """Every method of a layout over every first stage on every collection, with these gains in nDCG@10."""
    found = []
    for where in LAYOUTS[layout].collections:
        for stage in LAYOUTS[layout].stages:
            found.append(run(where, stage.id, 0.5, 0.5))
            for method in LAYOUTS[layout].methods:
                gain = gains[method] + (0.2 if (method, stage.id) == ("rnn", "bm25") else 0.0)
                gain += 0.2 if (method[:9], stage.id) == ("rnn-graph", "bm25") and method[-5:] != "alone" else 0.0
                found.append(run(where, stage.over(method), 0.5 + gain, 0.5, stage.id, 0.01))
    return found


def graph_page(folder: Path, records: list[Record]) -> str:
    """The page of the graph and that of its tables, filled in from records."""
    sources = folder / "docs" / "source"
    shutil.copytree(DOCS / "source" / "page_data", sources / "page_data")
    for name in ("graph.md.j2", "stage-tables.j2"):
        shutil.copy(DOCS / "source" / name, sources / name)
    shutil.copy(DOCS / "source" / "tables" / "graph.md.j2", sources / "graph-tables.md.j2")
    (folder / "results").mkdir()
    write_records(folder / "results" / "x.json", records)
    pages = write_prose(sources, folder / "docs", folder / "results")[:2]
    return "\n".join(page.read_text(encoding="utf-8") for page in sorted(pages))


GAINS = {"rnn": 0.05, "rnn-graph": 0.048, "rnn-graph-alone": 0.02, "rnn-graph-32": 0.049}
HEADINGS = ["What it costs", "What it gains, and where it loses", "Beside other uses of a graph", "Every comparison"]


def headings(page: str) -> list[str]:
    return [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]


def test_the_page_of_the_graph_has_sections_of_what_is_on_record(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    bare = graph_page(tmp_path / "a", [BENCHMARK, *RECORDS])
    assert not set(HEADINGS) & set(headings(bare))
    assert "are 845 MB (computed)" in " ".join(bare.split())
    assert "are 27 GB" in bare
    part = {"title": "T", "note": "What is measured.", "rows": [{"N": 60, "ratio": 0.5}]}
    costs = Record("benchmark", "", "performance", {"parts": {"graph": part}}, date="2026-01-01")
    one = [BENCHMARK, costs, run(CRANFIELD, "bm25", 0.5, 0.5)]
    one += [run(SCIFACT, "bm25", 0.5, 0.5), run(SCIFACT, "bm25-rnn", 0.6, 0.5, "bm25")]  # not from the graph: no cell
    one += [run(CRANFIELD, f"bm25-{method}", 0.51, 0.5, "bm25") for method in LAYOUTS["graph"].shown]
    partly = graph_page(tmp_path / "b", one)
    assert [name for name in HEADINGS if name in headings(partly)] == [HEADINGS[0], HEADINGS[1], HEADINGS[3]]
    assert "| 60 | 0.50 |" in partly
    (line,) = [line for line in partly.splitlines() if line.startswith("| BM25 | .5000 | all vectors | +.0100 [")]
    assert line.endswith("] | 0 of 1 | 0 | 0 | +.010, Cranfield |")
    assert "in the mean" not in partly
    rivals = graph_records(dict.fromkeys(LAYOUTS["graph rivals"].methods, 0.01) | {"lexboost": 0.03}, "graph rivals")
    whole = graph_page(tmp_path / "c", [costs, *rivals, *graph_records(GAINS)])
    assert [name for name in HEADINGS if name in headings(whole)] == HEADINGS
    assert "over every first stage in the mean, +.0200 to +.0200" in " ".join(whole.split())
    assert "On Cranfield and SciFact, in the mean, LexBoost" in whole
    assert "On Cranfield; SciFact; NQ-UTD; XQuAD, English; DL 2019 sample; DL 2020 sample; pydoc. Holm over" in whole
    assert "gains +.0300: more than rNN without the query, +.0200." in " ".join(whole.split())
    assert sum(line.startswith("| SciFact |") and "| first stage |" in line for line in whole.splitlines()) == 7


def test_the_page_of_the_graph_has_its_sizes_where_both_are_on_record(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    usual = [BENCHMARK, *graph_records(GAINS)]
    assert "How many neighbours" not in graph_page(tmp_path / "a", usual)
    page = graph_page(tmp_path / "b", [*usual, *graph_records(GAINS, "graph sizes")])
    assert "| first stage | nDCG@10 | all vectors | K = 16 | K = 32 |\n|---|--:|--:|--:|--:|\n| dense | .5000 |" in page
    assert "| RRF(BM25, dense) | .5000 | +.0500 | +.0480 | +.0490 |\n| SPLADE | .5000 |" in page
    assert "Over BM25 a graph of 16 gives up .0020 of +.2500, one of 32 .0010." in page


def test_recall_at_1000_stands_where_it_was_measured(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    rivals = graph_records(dict.fromkeys(LAYOUTS["graph rivals"].methods, 0.01), "graph rivals")
    assert "R@1000" not in graph_page(tmp_path / "a", [BENCHMARK, *rivals])
    for one in rivals:
        if one.spec == "cranfield" and one.name in ("bm25", "bm25-gar", "bm25-lexboost"):
            one.outcome["values"]["trec"]["R@1000"] = 0.75 if one.name == "bm25-gar" else 0.5
            if one.name != "bm25":
                above = 0.25 if one.name == "bm25-gar" else 0.0
                one.outcome["differences"]["R@1000"] = {"difference": above, "low": above - 0.1, "high": above + 0.1}
    lines = graph_page(tmp_path / "b", [BENCHMARK, *rivals]).splitlines()
    assert sum(line.endswith("| R@100 | difference | R@1000 | difference |") for line in lines) == 1
    cells = [[one.strip() for one in line.split("|")[-3:-1]] for line in lines if "| GAR |" in line]
    assert cells == [["0.7500", "+0.2500 [+0.1500, +0.3500]"], ["", ""]]
    assert [line.endswith("| 0.5000 | = |") for line in lines if "| LexBoost, no query" in line] == [True, False]
    assert [line.endswith("| 0.5000 | |") for line in lines if "| first stage |" in line and line[2] == "C"] == [True]


def test_collections_that_lose_from_the_graph_are_named(tmp_path: Path) -> None:
    lost = run(SCIFACT, "dense-rnn-graph-alone", 0.4, 0.5, "dense", 1e-6)
    records = [one for one in graph_records(GAINS) if (one.spec, one.name) != (lost.spec, lost.name)]
    page = " ".join(graph_page(tmp_path, [BENCHMARK, *records, lost]).split())
    said = "Without them, 1 of the 42 cells lies below its first stage: SciFact over dense -.1000\\*."
    assert f"{said} \\* marks an interval below 0; p is below .05 after Holm's correction in 1 of them." in page
    assert "With the query's similarities, none of the 42 cells lies below its first stage. " in page


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rnn-graph": 0.04}, "the graph keeps the mean gain of all vectors"),
        ({"rnn-graph-alone": -0.001}, "without query vectors the graph gains over every first stage"),
    ],
)
def test_conclusions_on_the_graph_hold_or_the_page_is_refused(
    tmp_path: Path, change: dict[str, float], said: str
) -> None:
    with pytest.raises(InputError, match=f"the records contradict '{said}"):
        graph_page(tmp_path, [BENCHMARK, *graph_records(GAINS | change)])


def test_every_collection_of_a_layout_has_the_conditions_that_it_looks_for() -> None:
    specs = {name: read_spec(specs_folder() / f"{name}.yaml") for name in {place.spec for place in _places()}}
    assert {(place.spec, place.query_set) for place in _places()} == {
        (name, query_set.id) for name, spec in specs.items() for query_set in spec.query_sets
    }
    for layout in LAYOUTS.values():
        for place in layout.collections:
            known = {condition.id: condition for condition in specs[place.spec].conditions}
            for stage in layout.stages:
                own = [known[stage.over(method)] for method in layout.methods if stage.over(method) in known]
                assert stage.id in known
                assert set(layout.shown) <= {one.id.removeprefix(f"{stage.prefix or stage.id}-") for one in own}
                assert {condition.base for condition in own} == {stage.id}
    assert set(LAYOUTS["runs"].methods) < set(METHODS)


def _places() -> list[Collection]:
    return [place for layout in LAYOUTS.values() for place in layout.collections]


def test_the_lines_that_make_xquad_of_its_file(tmp_path: Path) -> None:
    blocks = (DOCS / "data-sets.md").read_text().split("```python\n")[1:]
    (code,) = [block.split("```")[0] for block in blocks if "xquad" in block]
    asked = {"id": "q", "question": "Who?", "answers": [{"text": "A", "answer_start": 0}]}
    article = {"title": "T", "paragraphs": [{"context": "A did.", "qas": [asked]}, {"context": "B did.", "qas": []}]}
    (tmp_path / "xquad.en.json").write_text(json.dumps({"data": [article]}))
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert [(document.docid, document.text) for document in load_documents(tmp_path)] == [
        *(("p0", "T\nA did."), ("p1", "T\nB did."))
    ]
    assert load_topics(tmp_path) == {"q": "Who?"}
    assert load_qrels(tmp_path).values.tolist() == [["q", "p0", 1]]
