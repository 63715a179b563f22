"""The pages of the regressions: those in docs are what the command writes, and they say what is on record."""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import replace
from math import log2
from pathlib import Path

import pytest

from rnnreranker.errors import InputError
from rnnreranker.papers.join import key_of
from rnnreranker.papers.letters import letters
from rnnreranker.papers.markdown import cells_of, counted, paper_page
from rnnreranker.papers.matrix import Matrix
from rnnreranker.papers.paper import paper_names, read_paper
from rnnreranker.papers.site import write_pages
from rnnreranker.regress.__main__ import main
from rnnreranker.regress.pages_recipe import recipe_page
from rnnreranker.regress.paired import with_pairs
from rnnreranker.regress.published_runs import Measured, record, records_file
from rnnreranker.regress.spec import spec_names, specs_folder
from rnnreranker.runs import Run

DOCS = Path(__file__).resolve().parent.parent / "docs"
RECIPE = """\
schema: 2
name: small
title: A small recipe
about: Two systems.
topics: topics.tsv
qrels: qrels.txt
measures: [nDCG@10, RR@10]
runs: "*"
indexes:
  - {id: words, prebuilt: some-index, encoder: some-encoder, needs: {download_gb: 2.5, disk_gb: 7}}
conditions:
  - {id: bm25, title: BM25, retrieve: bm25, index: words, params: {k1: 0.9}, runs: ["bm25.txt"]}
  - {id: other, title: Other, base: bm25, index: words, rerank: rnn, params: {k: 12}, runs: ["other.txt"]}
  - {id: later, title: Later, planned: no method for it}
"""
PAPER = """\
schema: 1
name: paper-009
title: A paper
citation: A. Author, Its title, VENUE 2026
tables:
  - table: "1"
    caption: Two systems
    columns: [{dataset: Set, measures: [nDCG@10 x100, RR@10 x100], decimals: 1, spec: small, tuned_on_test: true}]
    rows:
      - {row: BM25, condition: bm25, values: [[50.0, 40.0]]}
      - {row: Other, condition: other, values: [[60.0, 90.0]], remarks: {"RR@10 x100": another version}}
      - {row: Later, condition: later, values: [[70.0, null]]}
  - table: "2"
    caption: Query by query
    columns: [{dataset: Set, measures: [nDCG@10 x100], decimals: 1, spec: small, queries: [1, 2]}]
    rows:
      - {row: BM25, condition: bm25, values: [[33.3, 66.7]], remarks: {"2": cut off}}
"""


def measured(condition: str, ndcg: float, rr: float, **given: object) -> Measured:
    values = {"trec": {"nDCG@10": ndcg, "RR@10": rr}}
    about = {"commit": "abc1234", "date": "2026-01-02T03:04:05+00:00"}
    full = Measured("small", condition, f"{condition}.txt", f"sha-{condition}", 10, 2, values, **about)  # type: ignore[arg-type]
    return replace(full, **given)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "regressions"
    (folder / "papers").mkdir(parents=True)
    (folder / "small.yaml").write_text(RECIPE, encoding="utf-8")
    (folder / "papers" / "paper-009.yaml").write_text(PAPER, encoding="utf-8")
    pair = {"condition": "other", "sha256": "sha-other", "protocol": "trec", "measure": "nDCG@10", "p_holm": 0.04}
    bm25 = measured("bm25", 0.5004, 0.4, pairs=[pair, pair | {"measure": "RR@10", "p_holm": 0.06}])
    bm25 = replace(bm25, queries={"trec": {"nDCG@10": {"1": 0.33333, "2": 0.66649}}})
    other = measured("other", 0.6, 0.8, pairs=[pair | {"condition": "bm25", "sha256": "sha-bm25"}])
    record(records_file(folder), [bm25, other])
    return folder


def test_the_pages_in_docs_are_what_the_command_writes(tmp_path: Path) -> None:
    assert main(["--docs", "--docs-folder", str(tmp_path)]) == 0
    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    names = [*spec_names(specs_folder()), *paper_names(specs_folder()), "README"]
    assert sorted(written) == sorted([Path("index.html"), *(Path("regressions", f"{name}.md") for name in names)])
    different = [str(path) for path, content in written.items() if (DOCS / path).read_bytes() != content]
    assert different == [], "write them again: python -m rnnreranker.regress --docs"
    assert {path.name for path in (DOCS / "regressions").glob("*.md")} == {f"{name}.md" for name in names}
    index = written[Path("regressions", "README.md")].decode()
    assert sorted(re.findall(r"\]\(([\w-]+)\.md\)", index)) == sorted(set(names) - {"README"})


def test_the_page_of_a_paper(folder: Path) -> None:
    text = paper_page(read_paper("paper-009", folder), Matrix(folder))
    assert text.splitlines()[1:5] == ["# Paper 009: A paper", "", "A. Author, Its title, VENUE 2026.", ""]
    assert text.splitlines()[5].startswith("4 reproduced, 2 changed, 1 planned. ")
    of_bm25 = "3 values of BM25 (Set), measured on the run file bm25.txt"
    assert (
        text.splitlines()[6] == f"Reproduced are {of_bm25}; 1 value of Other (Set), measured on the run file other.txt."
    )
    assert "† (3 values): the paper chose the parameters of the system on the set that it reports." in text
    first, second = text.split("\n## Table ")[1:]
    assert first.splitlines()[4:11] == [
        "| row | measure | published | measured | difference | state |",
        "|---|---|--:|--:|--:|---|",
        "| BM25 [a] | nDCG@10 x100 | 50.0 | 50.04 b | +.04 | reproduced |",
        "| BM25 [a] | RR@10 x100 | 40.0 | 40.00 | .00 | reproduced |",
        "| Other [b] | nDCG@10 x100 | 60.0† | 60.00 a | .00 | reproduced |",
        "| Other [b] | RR@10 x100 | 90.0† | 80.000 | −10.000 | changed (1) |",
        "| Later | nDCG@10 x100 | 70.0† | – | – | planned (2) |",
    ]
    assert "(1) another version\\\n(2) planned: no method for it\n" in first
    assert "1 of 2 queries give the printed value within half a unit of its last digit; these 1 do not" in second
    assert "| 2 | 66.7 | 66.649 | −.051 | cut off |" in second


def page_of_small(folder: Path) -> str:
    matrix = Matrix(folder)
    printed = cells_of(matrix, "small")
    return recipe_page(matrix.recipes["small"], matrix.records, printed, counted(cell.state for cell in printed))


def test_the_page_of_a_recipe(folder: Path) -> None:
    text = page_of_small(folder)
    for part in (
        "All of it takes:\n\n- 2.5 GB to download, 7 GB of disk\n",
        "4 reproduced, 2 changed, 1 planned. Published in [paper 009](paper-009.md);",
        "| `other` | 009 Table 1, Other | RR@10 x100 | 90.0† | 80.000 | −10.000 | changed |",
        "- 009 Table 1, Other, RR@10 x100: another version",
        "| `bm25` | trec | 0.5004 | 0.4000 | 2 | bm25.txt | 2026-01-02 | abc1234 |",
        "| `bm25`, `other` | trec | nDCG@10 | .040 |",
        "- `later` (Later): no method for it",
        "--retriever bm25 --rerank none --k1 0.9 ",
        "# later: planned",
    ):
        assert part in text, part


def test_a_page_without_results_shows_dashes(folder: Path) -> None:
    records_file(folder).unlink()
    text = page_of_small(folder)
    assert "| `bm25` | 009 Table 1, BM25 | nDCG@10 x100 | 50.0 | – | – | runnable elsewhere |" in text
    assert "Nothing yet, here" in text
    page = paper_page(read_paper("paper-009", folder), Matrix(folder))
    assert "[a]" not in page
    assert "Which queries" not in page


def test_every_paper_is_cited_on_its_page_and_in_the_matrix() -> None:
    index = (DOCS / "index.html").read_text(encoding="utf-8")
    for name in paper_names(specs_folder()):
        citation = read_paper(name, specs_folder()).citation
        assert re.search(r" 20\d\d$", citation), name
        assert f"\n{citation}.\n" in (DOCS / "regressions" / f"{name}.md").read_text(encoding="utf-8")
        assert f">{citation}.</p>" in index


def test_a_changed_parameter_changes_the_pages_and_nothing_else_is_edited(folder: Path, tmp_path: Path) -> None:
    write_pages(folder, tmp_path / "before")
    (folder / "small.yaml").write_text(RECIPE.replace("k: 12", "k: 17"), encoding="utf-8")
    write_pages(folder, tmp_path / "after")
    for name in ("regressions/small.md", "index.html"):
        before, after = ((tmp_path / side / name).read_text(encoding="utf-8") for side in ("before", "after"))
        assert before != after
        assert (
            before.replace("--k 12", "--k 17").replace('["k", "12"]', '["k", "17"]').replace('["k", 12]', '["k", 17]')
            == after
        )
    same = (tmp_path / "before" / "regressions" / "paper-009.md").read_bytes()
    assert (tmp_path / "after" / "regressions" / "paper-009.md").read_bytes() == same


def test_the_cells_of_the_page_say_how_they_were_measured(folder: Path) -> None:
    cells = {(cell["table"], cell["row"], cell["measure"]): cell for cell in Matrix(folder).cells}
    cell = cells["1", "Other", "RR@10 x100"]
    assert cell["commands"][1] == "python -m rnnreranker.regress small --runs RUNS --only other"
    assert "--k1 0.9" in cell["commands"][3]
    assert "--rerank rnn --k 12" in cell["commands"][4]
    assert cell["history"] == [
        {"date": "2026-01-02", "commit": "abc1234", "value": 80.0, "run": "other.txt", "sha256": "sha-other"}
    ]
    assert cell["parameters"]["k"] == 12


def test_letters_need_two_systems_and_the_runs_that_were_compared(folder: Path) -> None:
    matrix = Matrix(folder)
    newest = {(entry.spec, entry.condition): entry for entry in matrix.records}
    keys = {(cell.row, cell.metric, cell.table): key_of(cell) for cell in matrix.published}
    rows, differs = letters(matrix.published, newest)
    assert rows[keys["BM25", "nDCG@10", "1"]] == "a"
    assert differs[keys["BM25", "nDCG@10", "1"]] == "b"
    assert differs[keys["BM25", "RR@10", "1"]] == ""  # p = .06
    assert keys["BM25", "nDCG@10", "2"] not in rows  # alone in its table
    assert keys["Later", "nDCG@10", "1"] not in rows
    newest["small", "other"] = replace(newest["small", "other"], sha256="another run")
    assert (
        letters(matrix.published, newest)[1][keys["BM25", "nDCG@10", "1"]] == ""
    )  # compared with what is shown no more
    del newest["small", "other"]
    assert letters(matrix.published, newest) == ({}, {})


def test_runs_of_a_recipe_are_compared_topic_by_topic(folder: Path, tmp_path: Path) -> None:
    from scipy.stats import ttest_rel

    tmp = tmp_path / "runs"
    tmp.mkdir()
    qrels = tmp / "qrels.txt"
    qrels.write_text("".join(f"q{n} 0 d0 1\n" for n in range(4)), encoding="utf-8")
    ranks = {"bm25": [1, 2, 4, 2], "other": [1, 1, 1, 2]}
    for name, places in ranks.items():
        entries = {
            f"q{n}": {f"x{rank}" if rank != place else "d0": -float(rank) for rank in range(1, 6)}
            for n, place in enumerate(places)
        }
        Run.from_dict(entries).write(tmp / f"{name}.txt")
    recipe = replace(Matrix(folder).recipes["small"], qrels=str(qrels))
    on_file = [
        replace(measured(name, 0.5, 0.5), sha256=hashlib.sha256((tmp / f"{name}.txt").read_bytes()).hexdigest())
        for name in ranks
    ]
    found = with_pairs(on_file, {"small": recipe}, tmp)
    gains = {"RR@10": lambda place: 1 / place, "nDCG@10": lambda place: 1 / log2(1 + place)}
    p = {
        name: ttest_rel(*([gain(n) for n in places] for places in ranks.values())).pvalue
        for name, gain in gains.items()
    }
    smaller = min(p.values())
    assert [(pair["condition"], pair["sha256"], pair["protocol"]) for pair in found[0].pairs] == [
        ("other", on_file[1].sha256, "trec")
    ] * 2
    for pair in found[0].pairs:  # Holm: the smaller of two p doubled, the larger never below that
        assert pair["p_holm"] == pytest.approx(max(2 * smaller, p[pair["measure"]]), abs=1e-6)
    assert [pair["condition"] for pair in found[1].pairs] == ["bm25", "bm25"]
    assert with_pairs(on_file[:1], {"small": recipe}, tmp)[0].pairs == []
    shutil.copy(tmp / "bm25.txt", tmp / "other.txt")
    with pytest.raises(InputError, match=r"other.txt: sha256 .*, but small other was measured on .*: measure it again"):
        with_pairs(on_file, {"small": recipe}, tmp)


def test_a_wheel_without_docs_still_writes_its_pages(folder: Path, tmp_path: Path) -> None:
    """Without sweeps beside the specs there is no figure; with them there is."""
    write_pages(folder, tmp_path / "out")
    assert "<svg" not in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    shutil.copytree(DOCS / "contexts", folder.parent / "docs" / "contexts")
    shutil.copy(specs_folder() / "cranfield.yaml", folder)
    for path in (folder.parent / "docs" / "contexts").glob("*.json"):
        if not path.name.startswith("cranfield."):
            path.unlink()
    write_pages(folder, tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert 'class="level' not in page  # nothing is on record for the run before reranking
