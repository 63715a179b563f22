"""No command writes over what it reads: every path flag of every command, found by itself, and the ways to one file."""

import argparse
import importlib
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from refusals import refusal

import rnnreranker
from rnnreranker import build_index, make_labels, train_model
from rnnreranker.__main__ import COMMANDS as NAMES
from rnnreranker.base import command
from rnnreranker.base.command import READ, WRITTEN
from rnnreranker.base.errors import of_command
from rnnreranker.labels.negatives import mine_negatives

PACKAGE = Path(rnnreranker.__file__).parent
_TEXTS = """query text tag title compares measures measure explain qid docid host token address device only table sweep
    against miniature check specs"""
TEXTS = frozenset(_TEXTS.split())  # no paths, no forms with paths in them; a folder that results may be written into


def parsers() -> Iterator[argparse.ArgumentParser]:
    """Those of all commands, also of words that have flags of their own, as `tune train`."""
    for path in [*PACKAGE.rglob("__main__.py"), *(PACKAGE / f"{name}.py" for name in NAMES)]:
        if not path.is_file():
            continue
        module = importlib.import_module(".".join(["rnnreranker", *path.relative_to(PACKAGE).with_suffix("").parts]))
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.endswith("parser") and function.__module__ == module.__name__:
                yield function()


def takes_text(action: argparse.Action) -> bool:
    """Whether an argument may be a path: it takes any text."""
    if action.nargs == 0 or action.choices or isinstance(action, argparse.BooleanOptionalAction):
        return False
    try:
        return action.type is None or action.type("7") == "7"  # type: ignore[operator]
    except (ValueError, argparse.ArgumentTypeError):
        return False


PARSERS = {parser.prog.partition("rnnreranker.")[2]: parser for parser in parsers()}
TAKEN = {name: [action for action in parser._actions if takes_text(action)] for name, parser in PARSERS.items()}


@pytest.mark.parametrize("name", TAKEN)
def test_every_argument_that_takes_text_is_known_to_be_a_path_or_none(name: str) -> None:
    assert {action.dest for action in TAKEN[name]} - (READ | WRITTEN | TEXTS) == set()


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("search", "--index x --topics q.tsv --output link.tsv", r"--output link.tsv: the command reads it \(--topics"),
        ("search", "--index x --topics q.tsv --output kept/../q.tsv", "--output .*: the command reads it"),
        ("search", "--index kept --run q.tsv --output kept/a/run", r"run: is inside a folder .* \(--index kept\)"),
        (
            "search",
            "--index x --encoded-queries v.npy --output v.ids",
            r"the command reads it \(--encoded-queries v.ids",
        ),
        ("search", "--index x --topics q.tsv:without:b.tsv --output b.tsv", "--output b.tsv: the command reads it"),
        ("search", "--index x --run r --retriever bm25+dense:x=q.tsv --output q.tsv", "reads it"),
        ("search", "--index x --run r --encoder kept:pooling=cls --output kept/run", "is inside a folder"),
        ("search", "--index x --topics t --output new --explain-output ./new", "--output writes this path too"),
        ("fuse", "a.txt q.tsv --output q.tsv", r"the command reads it \(--runs q.tsv\)"),
        ("labels", "--run r --qrels s --output q.tsv --tsv link.tsv", "--output writes this path too"),
        ("experiment", "--index x --topics t --qrels s --systems bm25|q.tsv>rnn --output q.tsv", "reads it"),
    ],
)
def test_every_way_to_one_file_is_seen(
    name: str, words: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for file in ("q.tsv", "b.tsv", "v.npy", "v.ids"):
        Path(file).write_text("")
    Path("kept/a").mkdir(parents=True)
    Path("link.tsv").symlink_to("q.tsv")
    Path("there").symlink_to("kept")
    os.link("q.tsv", "hard.tsv")
    with of_command(), refusal(expected):
        PARSERS[name].parse_args(words.split())


RUN, QRELS, TOPICS = "q1 Q0 d1 1 2.0 a\n", "q1 0 d1 1\n", "q1\ttext\n"
COMMANDS = """search --index pydoc --topics topics.tsv --output topics.tsv
search --index pydoc --run run.txt --topics topics.tsv --qrels qrels.txt --output qrels.txt
fuse run.txt other.txt --output run.txt
evaluate run.txt --qrels qrels.txt --json qrels.txt
labels --run run.txt --qrels qrels.txt --method hard --output labels.parquet --tsv qrels.txt
negatives --run run.txt --qrels qrels.txt --documents docs.tsv --filter none --output run.txt
train --model masked --documents docs.tsv --encoder minilm --output docs.tsv
index --documents docs.tsv --output docs.tsv"""


@pytest.mark.parametrize("line", COMMANDS.splitlines())
def test_a_refused_command_leaves_every_file_as_it_was(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"run.txt": RUN, "other.txt": RUN, "qrels.txt": QRELS, "topics.tsv": TOPICS, "sheet-1.tsv": TOPICS}
    files["docs.tsv"] = "d1\ttext\n"
    for name, text in files.items():
        Path(name).write_text(text)
    command_name, *words = line.split()
    monkeypatch.setattr("sys.argv", ["command", *words])
    assert command.run(importlib.import_module(_module(command_name)).main) == 2
    assert "the command reads it (" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def _module(name: str) -> str:
    return f"rnnreranker.{name}.__main__" if (PACKAGE / name).is_dir() else f"rnnreranker.{name}"


def test_a_folder_that_is_replaced_holds_no_input(tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text("{}")
    (tmp_path / "labels.parquet").write_text("")
    with refusal(r"is written as a whole, but labels .*labels.parquet is inside it"):
        train_model(tmp_path / "labels.parquet", "pydoc", "pydoc/train", output=tmp_path)
    (tmp_path / "index").write_text("")
    (tmp_path / "docid").write_text("d1\n")
    (tmp_path / "docs.tsv").write_text("d1\ttext\n")
    with refusal(r"is written as a whole, but documents .*docs.tsv is inside it"):
        build_index(tmp_path / "docs.tsv", tmp_path, parts="bm25")
    assert (tmp_path / "docs.tsv").read_text() == "d1\ttext\n"


def test_functions_refuse_to_replace_what_they_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run.tsv", "qrels.txt"):
        Path(name).write_text("q 0 d 1 1 t\n")
    with refusal(r"tsv run.tsv: the command reads it"):
        make_labels("run.tsv", "qrels.txt", None, "hard", tsv="run.tsv")
    with refusal(r"output run.tsv: the command reads it"):
        mine_negatives("run.tsv", "qrels.txt", None, output="run.tsv")
