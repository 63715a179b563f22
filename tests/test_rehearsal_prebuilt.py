"""Miniatures of Pyserini's prebuilt indexes: opened by Pyserini's own loader, from a cache of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.regress.plans.plan import make_plan
from rnnreranker.regress.rehearsal.datasets.families import documents_of
from rnnreranker.regress.rehearsal.models import write_models
from rnnreranker.regress.rehearsal.needs import needs_of_plan
from rnnreranker.regress.rehearsal.prebuilt import COLLECTIONS, ENCODERS, write_prebuilt
from rnnreranker.regress.rehearsal.source import Source
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import specs_folder

pytest.importorskip("pyserini")
TAS_B = "msmarco-v1-passage.distilbert-dot-tas_b-b256"
OPEN = """
import json, sys
from rnnreranker import open_index
from rnnreranker.base.java import start_java
start_java()
from pyserini.search.lucene import LuceneSearcher
from pyserini.util import download_prebuilt_index
words = LuceneSearcher(download_prebuilt_index("msmarco-v1-passage", verbose=False))
raw = json.loads(words.doc(7).raw())
seen = [words.num_docs, raw["id"], raw["contents"]]
tas_b = {"retrieve": "dense", "encoder": "tas-b"}
for name, given in (("msmarco-v1-passage", {"retrieve": "bm25"}), (sys.argv[1], tas_b)):
    seen.append(open_index(name).search({"q": raw["contents"]}, rerank=None, hits=3, **given).ranked("q"))
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def source() -> Source:
    return Source.of(documents=600, topics=10)


@pytest.fixture(scope="module")
def written(source: Source, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("prebuilt")
    models = write_models(folder, ["sebastian-hofstaetter/distilbert-dot-tas_b-b256-msmarco"])
    return folder, {**models, **write_prebuilt(source, folder, ["msmarco-v1-passage", TAS_B])}


@pytest.mark.long
def test_pyserini_and_this_package_open_them(written: tuple[Path, dict[str, str]], source: Source) -> None:
    """Without a download: the collection's documents, of which a text's own is the first that is retrieved."""
    folder, variables = written
    environment = {**os.environ, **variables, "RNNRERANKER_HOME": str(folder / "home")}
    words = [sys.executable, "-c", OPEN, TAS_B]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen: list[Any] = json.loads(done.stdout.splitlines()[-1])
    documents = list(documents_of(source, "msmarco-passage"))
    assert seen[:3] == [len(documents), documents[7].docid, documents[7].text]
    assert [ranked[0] for ranked in seen[3:]] == ["7", "7"]
    assert [len(ranked) for ranked in seen[3:]] == [3, 3]


def test_one_that_is_there_stays(written: tuple[Path, dict[str, str]], source: Source) -> None:
    """Nothing is written again, and Pyserini's cache is the one beside the other miniatures."""
    folder, variables = written
    assert variables["PYSERINI_CACHE"] == str(folder / "pyserini")
    (index,) = (folder / "pyserini" / "indexes").glob("faiss-flat.*")
    (index / "docid").unlink()
    assert write_prebuilt(source, folder, [TAS_B]) == {"PYSERINI_CACHE": variables["PYSERINI_CACHE"]}
    assert sorted(path.name for path in index.iterdir()) == ["index"]


def test_every_prebuilt_index_that_a_plan_names_has_a_miniature() -> None:
    """The plans of all specs."""
    wanted = set()
    for path in sorted(specs_folder().glob("*.yaml")):
        spec = read_spec(path)
        wanted.update(needs_of_plan(make_plan(spec, works=spec.works)).prebuilt)
    assert wanted == {*COLLECTIONS, *(f"msmarco-v1-passage.{one}" for one in ENCODERS)}


@pytest.mark.parametrize("name", ["msmarco-v1-doc", "msmarco-v1-passage.ance"])
def test_an_index_without_a_miniature(name: str, source: Source, tmp_path: Path) -> None:
    """The name, and those that there are."""
    with pytest.raises(InputError, match=f"{name}: no miniature of this prebuilt index; expected msmarco-v1-passage, "):
        write_prebuilt(source, tmp_path, [name])
    assert not list(tmp_path.iterdir())
