"""The rooms of the package: imports point one way, heavy packages load late, every package is in the wheel."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.__main__ import COMMANDS, script
from rnnreranker.__main__ import main as list_commands
from rnnreranker.base import command
from rnnreranker.base.errors import MissingDependencyError, require

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "rnnreranker"

# Each folder imports only from folders that stand before it, its command too.
FOLDERS = (
    *("base", "rnn", "runs", "encode", "data", "parts", "methods"),
    *("index", "evaluate", "search", "labels", "train", "adapters", "serve", "lab", "regress"),
)


def modules() -> list[Path]:
    top = {PACKAGE / "__init__.py", PACKAGE / "__main__.py"}
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path not in top]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("rnnreranker.")}


def test_every_folder_is_listed_and_the_top_has_commands_alone() -> None:
    there = {path.relative_to(PACKAGE).parts[0] for path in modules()}
    assert {name for name in there if not name.endswith(".py")} == set(FOLDERS)
    assert {name.removesuffix(".py") for name in there if name.endswith(".py")} <= {*COMMANDS, "_version", "plugins"}


def test_imports_point_one_way() -> None:
    for path in modules():
        folder = path.relative_to(PACKAGE).parts[0]
        for imported in imports_of(path):
            asked = imported.split(".")[1]
            assert not imported.startswith("rnnreranker.regress.__main__"), f"{path} imports a command"
            if folder not in FOLDERS:
                continue
            if asked in FOLDERS:
                assert FOLDERS.index(asked) <= FOLDERS.index(folder), f"{folder} imports {imported}"


@pytest.mark.parametrize("package", ["", ".evaluate", ".lab.tune", ".plugins", ".train"])
def test_every_name_that_is_handed_on_is_there(package: str) -> None:
    module = importlib.import_module(f"rnnreranker{package}")
    names: dict[str, object] = {}
    exec(f"from rnnreranker{package} import *", names)
    assert len(module.__all__) > 3
    assert set(module.__all__) <= {*dir(module)} & {name for name, value in names.items() if value is not None}
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_that_name'"):
        module.nothing_of_that_name  # noqa: B018  asking is what is tested


def test_no_import_goes_in_a_circle() -> None:
    """Neither at the top of modules nor inside functions."""
    known = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    known = {name.removesuffix(".__init__"): path for name, path in known.items()}
    graph = {}
    for name, path in known.items():
        found = {wanted if wanted in known else wanted.rpartition(".")[0] for wanted in imports_of(path)}
        graph[name] = sorted(found & set(known) - {name, "rnnreranker"})
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_flags_are_parsed_in_commands_alone() -> None:
    """Elsewhere functions take requests or arguments; `base/command.py` makes flags of settings."""
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "__main__.py"]
    parsing = {path for path in files if re.search(r"import argparse|Namespace", path.read_text(encoding="utf-8"))}
    assert parsing == {PACKAGE / "base" / "command.py"}


def test_no_module_is_a_crowd() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {str(path): length for path, length in lengths.items() if length > 500} == {}


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


HEAVY = {"torch", "transformers", "faiss", "pyserini", "jnius", "pandas", "pyarrow", "numba", "scipy", "ir_datasets"}
HEAVY |= {"fastapi", "uvicorn", "pydantic", "mcp"}


@pytest.mark.parametrize(
    "statement",
    [
        "import rnnreranker",
        "from rnnreranker import RnnParams, RnnReranker, Run, jaccard_similarity, rnn_similarity",
        "import rnnreranker.search.__main__, rnnreranker.evaluate.__main__, rnnreranker.index.__main__",
        "import rnnreranker.regress.__main__",
        "from rnnreranker import build_index, evaluate_run, make_labels, open_index, rerank_hits, train_model",
        "import rnnreranker.labels.__main__, rnnreranker.negatives",
        "import rnnreranker.serve.__main__",
        "import rnnreranker.experiment, rnnreranker.tune, rnnreranker.study",
    ],
)
def test_heavy_packages_load_late(statement: str) -> None:
    assert loaded_by(statement) & HEAVY == set()


def test_every_command_is_listed() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__main__.py")}
    scripts = {path.stem for path in PACKAGE.glob("*.py") if "__name__ ==" in path.read_text(encoding="utf-8")}
    assert set(COMMANDS) == rooms | scripts - {"__main__"}
    done = subprocess.run([sys.executable, "-m", "rnnreranker"], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()[1:-2]] == list(COMMANDS)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("search", "write python -m rnnreranker.search"),
        ("labls", "labls: no such command, did you mean labels?; python -m rnnreranker lists them"),
    ],
)
def test_a_command_written_with_a_space(word: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with refusal(re.escape(said)):
        list_commands([word, "--help"])
    monkeypatch.setattr(sys, "argv", ["rnnreranker", word])
    assert command.run(list_commands) == 2


@pytest.mark.parametrize(
    ("words", "ran"),
    [
        (["search", "--help"], ["-m", "rnnreranker.search", "--help"]),
        (["methods", "rnn"], ["-m", "rnnreranker", "methods", "rnn"]),
        ([], ["-m", "rnnreranker"]),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="other systems start a process")
def test_the_console_script_is_the_command(words: list[str], ran: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Replaced(Exception):
        pass

    def execv(program: str, argv: list[str]) -> None:
        assert (program, argv) == (sys.executable, [sys.executable, *ran])
        raise Replaced

    monkeypatch.setattr(sys, "argv", ["rnnreranker", *words])
    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(Replaced):
        script()


def test_what_is_lacking_is_installed_from_a_checkout_too() -> None:
    said = "nothing_there is needed for it: pip install '.[train]' in the checkout, or 'rnnreranker[train]'"
    with pytest.raises(MissingDependencyError, match=f"^{re.escape(said)}$"):
        require("nothing_there", "it", "'rnnreranker[train]'")
    with pytest.raises(MissingDependencyError, match=r": pip install faiss-cpu$"):
        require("nothing_there", "it", "faiss-cpu")
