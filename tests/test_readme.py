"""The README does what it says: its commands and Python run, its figures are those on record."""

from __future__ import annotations

import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_encoder import files_of

import rnnreranker
from rnnreranker import Run
from rnnreranker.__main__ import COMMANDS
from rnnreranker._version import __version__
from rnnreranker.index.__main__ import main as index
from rnnreranker.regress.papers.matrix import Matrix
from rnnreranker.regress.plans.runner import chosen_plan
from rnnreranker.regress.records import last_run, recorded
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import specs_folder
from rnnreranker.search.__main__ import main as search

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "UPGRADING.md", *(ROOT / "docs").rglob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = {
    "d1": "A kettle boils water for tea.",
    "d2": "Steep black tea for four minutes in boiling water.",
    "d3": "The train to the coast leaves at nine.",
    "d4": "Timetables of regional trains and buses.",
    "d5": "Green tea wants water that is not quite boiling.",
}


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == language]


def results(output: str) -> list[int]:
    """The exit codes of the commands in the block that makes this index."""
    (block,) = [block for block in blocks("bash") if output in block]
    lines = block.replace("\\\n", "").splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("python -m rnn")]
    mains = {"rnnreranker.index": index, "rnnreranker.search": search}
    return [mains[words[2]](words[3:]) for words in commands]


@pytest.fixture(scope="module")
def own_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    lines = [json.dumps({"id": docid, "text": text}) + "\n" for docid, text in DOCUMENTS.items()]
    (folder / "corpus.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "queries.tsv").write_text("q1\thow long does tea take\nq2\twhen is the next train\n", encoding="utf-8")
    (folder / "qrels.txt").write_text("q1 0 d2 1\nq2 0 d3 1\n", encoding="utf-8")
    return folder


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
        lines = [json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    for split, rows in (("train", "t1\td1\t1\nt2\td4\t1\n"), ("test", "q1\td2\t1\nq2\td3\t1\n")):
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}", encoding="utf-8")


@pytest.mark.model
def test_own_data(own_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(own_data)
    assert results("corpus.jsonl --output my-index") == [0, 0, 0]
    run = Run.read("run.txt")
    assert set(run.ranked("q1")[:3]) == {"d1", "d2", "d5"}
    assert set(run.ranked("q2")[:2]) == {"d3", "d4"}
    assert "nDCG@10" in capsys.readouterr().out


@pytest.mark.jvm
def test_from_a_graph(own_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own_data)
    assert results("--output graph-index") == [0, 0]
    first_stage = ["--retriever", "bm25", "--rerank", "none", "--output", "bm25.txt"]
    assert search(["--index", "graph-index", "--topics", "queries.tsv", *first_stage]) == 0
    (line,) = re.findall(r"^`(RnnReranker\(open_neighbours.*?)`", README, re.MULTILINE)
    found = eval(line, {name: getattr(rnnreranker, name) for name in ("RnnReranker", "Run", "open_neighbours")})
    assert {qid: found.ranked(qid) for qid in found} == {qid: Run.read("from-graph.txt").ranked(qid) for qid in found}


@pytest.mark.model
def test_python(own_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own_data)
    if not Path("my-index").is_dir():
        assert index(["--documents", "corpus.jsonl", "--output", "my-index"]) == 0
    first_stage = ["--rerank", "none", "--output", "dense.txt"]
    assert search(["--index", "my-index", "--topics", "queries.tsv", *first_stage]) == 0
    np.save("queries.npy", np.random.default_rng(5).normal(size=(2, 384)).astype(np.float32))
    names: dict[str, Any] = {}
    for block in blocks("python"):
        if "my-data" not in block:  # run below, beside its commands
            exec(block, names)
    assert {*Run.read("reranked.txt").ranked("q1")} == {*DOCUMENTS}
    assert f"{shlex.join(first_stage)}`" in README
    assert names["scores"].shape == (2, 60)


@pytest.mark.model
def test_python_and_the_commands_beside_it_give_the_same(
    own_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One index, one run, one table, one set of labels, one encoder: equal but for the tag of the run."""
    (script,) = [block for block in blocks("python") if "train_model" in block]
    (commands,) = [block for block in blocks("bash") if "rnnreranker.train" in block]
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
def test_the_question_and_its_table(built_in_index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("console")
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


def test_figures_are_those_on_record() -> None:
    (block,) = [block for block in blocks("") if "Judged@10" in block]
    spec = read_spec(specs_folder() / "pydoc.yaml")
    records = recorded(specs_folder(), ["pydoc"])
    (demo,) = re.findall(r"rnnreranker\.regress pydoc (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    asked = demo.replace("--only", "").split()
    for condition in chosen_plan(spec, spec.query_sets, asked, Path("runs")).conditions:
        record = last_run(records, "pydoc", condition.id)
        assert record is not None
        values = " ".join(f"{record.outcome['values']['trec'][measure]:.4f}" for measure in spec.measures)
        (line,) = [line for line in block.splitlines() if re.split(" {2,}", line)[1] == condition.title]
        assert values in " ".join(line.split())


def test_published_values_are_counted_as_the_matrix_counts_them() -> None:
    states = [cell["state"] for cell in Matrix(specs_folder()).cells]
    said = re.search(r"has all ([\d,]+) values .* them; (\d+) are reproduced", README.replace("\n", " "))
    assert said is not None
    assert (said[1].replace(",", ""), int(said[2])) == (str(len(states)), states.count("reproduced"))


def test_every_command_is_in_the_table() -> None:
    assert set(re.findall(r"^\| `python -m rnnreranker\.([\w.]+)` \|", README, re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", link)]
    lost = [link for link in links if not leads_somewhere(page, link)]
    assert lost == []


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether a link of a page is to a file that is there, and to a heading of it."""
    name, _, heading = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists() or not heading or target.suffix != ".md":
        return target.exists()
    headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return heading in [re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings]


def test_the_readme_and_make_take_the_same_build_of_torch() -> None:
    (index_url,) = re.findall(r"^CPU_TORCH \?= (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert f"pip install --no-deps -c constraints.txt torch {index_url} " in README


def test_a_version_says_what_changed_in_at_most_200_words() -> None:
    versions = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert versions[0].split()[0] == __version__
    assert f"to {__version__}" in (ROOT / "UPGRADING.md").read_text(encoding="utf-8")
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert [version.split()[0] for version in versions if len(version.split()) > 200] == []


def test_the_index_for_language_models_leads_somewhere_and_names_what_there_is() -> None:
    text = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []
    (names,) = re.findall(r"from rnnreranker import ([\w, ]+)", text)
    assert [name for name in names.split(", ") if not hasattr(rnnreranker, name)] == []
