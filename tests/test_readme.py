"""The README and the first pages do what they say: commands and Python run, figures are those on record."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_data.first_stages import PUBLIC, stage_table
from places import ROOT
from query_sets import files_of, ranking, write_lines, write_queries, write_texts
from site_links import Page

import rnnreranker
from rnnreranker import Run
from rnnreranker.__main__ import COMMANDS
from rnnreranker._version import __version__
from rnnreranker.base.record import read_records
from rnnreranker.index.__main__ import main as index
from rnnreranker.regress.papers.matrix import Matrix
from rnnreranker.regress.records import Figures, recorded
from rnnreranker.regress.specs.spec import spec_names, specs_folder
from rnnreranker.search.__main__ import main as search

PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
README, MAKEFILE = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "Makefile"))
DOCUMENTS = {
    "d1": "A kettle boils water for tea.",
    "d2": "Steep black tea for four minutes in boiling water.",
    "d3": "The train to the coast leaves at nine.",
    "d4": "Timetables of regional trains and buses.",
    "d5": "Green tea wants water that is not quite boiling.",
}


def blocks(language: str, page: str = "README.md") -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == language]


def results(output: str, page: str = "README.md") -> list[int]:
    """The exit codes of the commands in the block that has these words."""
    (block,) = [block for block in blocks("bash", page) if output in block]
    lines = [line.replace("python -m rnnreranker.", "rnnreranker ") for line in block.replace("\\\n", "").splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("rnnreranker ")]
    return [{"index": index, "search": search}[words[1]](words[2:]) for words in commands]


@pytest.fixture(scope="module")
def own_data(module_path: Path) -> Path:
    write_lines(
        module_path / "corpus.jsonl", (json.dumps({"id": docid, "text": text}) for docid, text in DOCUMENTS.items())
    )
    write_texts(module_path / "queries.tsv", {"q1": "how long does tea take", "q2": "when is the next train"})
    write_lines(module_path / "qrels.txt", ["q1 0 d2 1", "q2 0 d3 1"])
    return module_path


def beir_folder(folder: Path) -> None:
    """A collection in BEIR layout: twelve documents, two queries to train on, two to test with."""
    (folder / "qrels").mkdir(parents=True)
    documents = {**DOCUMENTS, **{f"e{n}": f"{text} Number {n}." for n, text in enumerate(DOCUMENTS.values())}}
    queries = {
        "t1": "boiling water",
        "t2": "buses of the region",
        "q1": "how long does tea take",
        "q2": "the next train",
    }
    for name, texts in (("corpus", documents), ("queries", queries)):
        write_lines(folder / f"{name}.jsonl", (json.dumps({"_id": key, "text": text}) for key, text in texts.items()))
    for split, rows in (("train", "t1\td1\t1\nt2\td4\t1\n"), ("test", "q1\td2\t1\nq2\td3\t1\n")):
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}", encoding="utf-8")


@pytest.fixture
def own_vectors(own_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run, the vectors of its documents and of its queries, where the first pages say that they are."""
    rng = np.random.default_rng(5)
    write_queries(tmp_path / "vectors.npy", DOCUMENTS, rng.normal(size=(len(DOCUMENTS), 8)))
    write_queries(tmp_path / "queries.npy", ["q1", "q2"], rng.normal(size=(2, 8)))
    rows = [f"{qid} Q0 {docid} {n} {9 - n} x" for qid in ("q1", "q2") for n, docid in enumerate([*DOCUMENTS][::-1], 1)]
    for name in ("run.txt", "dense.txt"):
        write_lines(tmp_path / name, rows)
    shutil.copy(own_data / "qrels.txt", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.model
@pytest.mark.parametrize("page", ["README.md", "docs/start/five-minutes.md"])
@pytest.mark.long
def test_own_data(
    page: str, own_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(own_data, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert set(results("corpus.jsonl --output my-index", page)) == {0}
    said = capsys.readouterr().out
    assert "nDCG@10" in said
    if page != "README.md":
        run = Run.read("run.txt")
        assert set(run.ranked("q1")[:3]) == {"d1", "d2", "d5"}
        assert set(run.ranked("q2")[:2]) == {"d3", "d4"}


@pytest.mark.jvm
def test_from_a_graph(own_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(own_data, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert results("--output graph-index", "docs/start/your-run.md") == [0, 0]
    first_stage = ["--retriever", "bm25", "--rerank", "none", "--output", "bm25.txt"]
    assert f"search … {shlex.join(first_stage)}`" in (ROOT / "docs/start/your-run.md").read_text(encoding="utf-8")
    assert search(["--index", "graph-index", "--topics", "queries.tsv", *first_stage]) == 0
    (block,) = [block for block in blocks("python", "docs/start/your-run.md") if "open_neighbours" in block]
    names: dict[str, Any] = {}
    exec(block, names)
    run = names["run"]
    assert ranking(run) == ranking(Run.read("from-graph.txt"))


def test_own_vectors(own_vectors: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("python")
    exec(block, {})
    assert set(Run.read("reranked.txt").ranked("q1")) == {*DOCUMENTS}
    assert "before" in capsys.readouterr().out


def test_a_store() -> None:
    pytest.importorskip("qdrant_client")
    (block,) = blocks("python", "docs/start/your-store.md")
    names: dict[str, Any] = {}
    exec(block, names)
    assert {point.id for point in names["reranked"]} == {point.id for point in names["hits"]}


@pytest.mark.model
@pytest.mark.long
def test_python_and_the_commands_beside_it_give_the_same(
    own_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One index, one run, one table, one set of labels, one encoder: equal but for the tag of the run."""
    page = "docs/start/your-run.md"
    (script,) = [block for block in blocks("python", page) if "train_model" in block]
    (commands,) = [block for block in blocks("bash", page) if "rnnreranker.train" in block]
    script = script.replace('kind="query"', 'kind="query:max_steps=2"')
    commands = commands.replace("--model query", "--model query:max_steps=2")
    for way in ("python", "shell"):
        (own_data / way).mkdir()
        monkeypatch.chdir(own_data / way)
        beir_folder(Path("my-data"))
        capsys.readouterr()
        if way == "python":
            names: dict[str, Any] = {}
            exec(script, names)
            names["labels"].write("labels.parquet")
            table = names["evaluate_run"](
                {"dense": names["dense"], "run": names["run"]}, "my-data", measures=("nDCG@10", "RR@10")
            )
        else:
            lines = [shlex.split(line)[2:] for line in commands.replace("\\\n", "").splitlines()]
            assert [import_module(f"{module}.__main__").main(words) for module, *words in lines] == [0] * 7
    said = capsys.readouterr().out
    for name, row in table.iterrows():
        assert f"{name}\t" + "\t".join(f"{value:.4f}" for value in row) in said
    python, shell = own_data / "python", own_data / "shell"
    assert files_of(python / "my-index") == files_of(shell / "my-index")
    assert [line.split()[:5] for line in (python / "run.txt").read_text().splitlines()] == [
        line.split()[:5] for line in (shell / "run.txt").read_text().splitlines()
    ]
    assert (python / "labels.parquet").read_bytes() == (shell / "labels.parquet").read_bytes()
    assert files_of(python / "my-encoder") == files_of(shell / "my-encoder")


@pytest.mark.model
@pytest.mark.jvm
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the README shows the documents of Python 3.11")
@pytest.mark.long
def test_the_question_and_its_table(built_in_index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("console", "docs/start/five-minutes.md")
    prompt, _, *shown = block.splitlines()
    words = shlex.split(prompt.removeprefix("$ .venv/bin/python -m rnnreranker.search"))
    make = ["--documents", "pydoc", "--output", str(built_in_index), "--parts", "dense,bm25"]  # as the README's reader
    assert index(make) == 0
    capsys.readouterr()
    assert search([*words, "--index", str(built_in_index), "--show", str(len(shown))]) == 0
    found = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]]
    for line, (rank, moved, docid, score, text) in zip(shown, found, strict=True):
        arrow = "=" if moved == "0" else moved.replace("+", "↑").replace("-", "↓")
        assert line.split()[:4] == [rank, arrow, docid, f"{float(score):.4f}"]
        assert text.startswith(line.split(maxsplit=4)[4].removesuffix("…"))


def test_figures_of_the_demo_are_those_on_record() -> None:
    (block,) = [block for block in blocks("", "docs/start/five-minutes.md") if "Judged@10" in block]
    assert "-m rnnreranker.experiment --index pydoc --topics pydoc --qrels pydoc --protocol dl" in MAKEFILE
    figures, (_, *rows, empty, advice) = Figures(recorded(specs_folder(), ["pydoc"])), block.splitlines()
    stages = {"bm25": "bm25", "dense": "dense", "bm25+dense by minmax": "minmax", "bm25+dense by rrf": "hybrid"}
    conditions = {name + more: stages[name] + more.replace(" > ", "-") for name in stages for more in ("", " > rnn")}
    assert [re.split(" {2,}", row)[0] for row in rows] == list(conditions)
    for row, condition in zip(rows, conditions.values(), strict=True):
        values = figures.record("run", "pydoc", condition).outcome["values"]["dl"]
        assert re.split(" {2,}", row)[1:5] == ["dl", *(f"{values[name]:.4f}" for name in ("nDCG@10", "RR@10", "AP"))]
        assert f" {values['Judged@10']:.3f} " in row
    assert not empty
    assert advice.startswith("take dense > rnn: nDCG@10 0.6234, ")


def test_the_number_of_the_readme_is_that_on_record() -> None:
    table = stage_table(Figures(recorded(specs_folder(), spec_names(specs_folder()))), PUBLIC)
    over = table.over("rnn", "minmax")
    tunings = read_records(specs_folder() / "results/tunings.json")
    [left_out] = (one.outcome["cells"] for one in tunings if one.name == "first-stages-space")
    cells = [one for one in left_out if one["name"].endswith(".minmax") and one["collection"] != "pydoc"]
    gain = sum(one["chosen"] for one in cells) / 6
    half = sum(((one["chosen_high"] - one["chosen_low"]) / 2) ** 2 for one in cells) ** 0.5 / 6
    said = f"**{gain:+.4f} nDCG@10 [{gain - half:+.4f}, {gain + half:+.4f}]** (95% interval over queries) to BM25 and "
    said += f"MiniLM fused by min-max ({over.base:.4f}), with settings chosen on the other collections. The default, "
    said += f"chosen on all, adds {over.gain:+.4f} nDCG@10, {over.of('AP').gain:+.4f} AP and "
    said += f"{over.of('RR@10').gain:+.4f} RR@10."
    said = re.sub(r"\b0\.", ".", said)
    assert said in README.replace("\n", " ")
    assert said[: said.index(" (")] in (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert min(table.over("rnn", stage.id).gain for stage in table.layout.stages) > 0  # every first stage gains
    assert len(table.layout.collections) == 6


@pytest.mark.long
def test_published_values_are_counted_as_the_matrix_counts_them() -> None:
    states = list(Matrix(specs_folder()).cells["state"])
    said = re.search(r"([\d,]+) published values, (\d+) of them reproduced here", README.replace("\n", " "))
    assert said is not None
    assert (said[1].replace(",", ""), int(said[2])) == (str(len(states)), states.count("reproduced"))


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 80
    assert len(README.split()) <= 550


def test_every_command_is_in_the_table() -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `python -m rnnreranker\.([\w.]+)` \|", text, re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", link)]
    lost = [link for link in links if not leads_somewhere(page, link)]
    assert lost == []


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether a link of a page is to a file that is there, and to a heading or an element of it."""
    name, _, heading = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists() or not heading or target.suffix not in (".md", ".html"):
        return target.exists()
    if target.suffix == ".html":
        return "=" in heading or heading in Page(target.read_text(encoding="utf-8")).ids
    headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return heading in [re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings]


def test_pages_and_make_take_the_same_build_of_torch() -> None:
    (index_url,) = re.findall(r"^CPU_TORCH \?= (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    text = (ROOT / "docs" / "start" / "five-minutes.md").read_text(encoding="utf-8")
    assert f"pip install --no-deps -c constraints.txt torch {index_url} " in text


def test_a_version_says_what_changed_in_at_most_200_words() -> None:
    versions = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert versions[0].split()[0] == __version__
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert [version.split()[0] for version in versions if len(version.split()) > 200] == []


def test_the_index_for_language_models_leads_somewhere_and_names_what_there_is() -> None:
    text = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []
    (names,) = re.findall(r"from rnnreranker import ([\w, ]+)", text)
    assert [name for name in names.split(", ") if not hasattr(rnnreranker, name)] == []
