"""Blocks of encoded parts made by several processes and by the workers of clusters: the bytes are those of one."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from lost_worker import CLUSTERS, cluster_that_loses_a_worker
from query_sets import write_documents
from refusals import refusal
from tiny_encoder import WORDS, make_encoder

from rnnreranker.index.__main__ import main

DOCUMENTS = 4500  # nine blocks


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("shards") / "encoder")


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = [[WORDS[(number * step) % len(WORDS)] for step in range(1, 3 + number % 5)] for number in range(DOCUMENTS)]
    texts = {f"d{number}": " ".join(own) for number, own in enumerate(words)}
    return write_documents(tmp_path_factory.mktemp("documents") / "docs.jsonl", texts)


def flags(documents: Path, encoder: Path, output: Path) -> list[str]:
    return ["--documents", str(documents), "--parts", f"dense:encoder={encoder},pooling=mean", "--output", str(output)]


def digests(index: Path) -> dict[str, str]:
    return {
        str(path.relative_to(index)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(index.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def plain(documents: Path, encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    output = tmp_path_factory.mktemp("plain") / "index"
    assert main(flags(documents, encoder, output)) == 0
    return digests(output)


@pytest.mark.usefixtures("as_command")
def test_shares_are_encoded_once_and_put_together(
    plain: dict[str, str], documents: Path, encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One share lacks when they are put together, and is made then."""
    output = tmp_path / "index"
    command = flags(documents, encoder, output)
    for number in (2, 0):
        assert main([*command, "--shard-id", str(number), "--shard-num", "3"]) == 0
    assert not output.exists()
    assert main([*command, "--shard-id", "0", "--shard-num", "3"]) == 0
    said = capsys.readouterr().err
    assert f"{output}: shard 2 of 3 of dense: 3 blocks of documents made, 0 were there" in said
    assert f"{output}: shard 0 of 3 of dense: 0 blocks of documents made, 3 were there" in said
    assert main(command) == 0
    assert "2964 of them encoded before" in capsys.readouterr().err  # six blocks, of which one is the last
    assert digests(output) == plain
    assert not output.with_name("index.partial").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--shard-id", "3", "--shard-num", "3"], "--shard-id 3: no such share; expected 0..2"),
        (["--shard-id", "0", "--shard-num", "3", "--overwrite"], "--shard-id 0 beside --overwrite, which one process"),
        (
            ["--shard-id", "0", "--shard-num", "3", "--parts", "bm25"],
            "--shard-id 0: shares are of dense, impact, tokens",
        ),
    ],
)
@pytest.mark.usefixtures("as_command")
def test_what_has_no_shares(more: list[str], said: str, documents: Path, tmp_path: Path) -> None:
    with refusal(re.escape(said)):
        main(["--documents", str(documents), "--output", str(tmp_path / "index"), *more])
    assert not (tmp_path / "index").exists()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", *CLUSTERS])
def test_workers_make_the_bytes_of_one_process(
    backend: str, plain: dict[str, str], documents: Path, encoder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "index"
    assert main([*flags(documents, encoder, output), "--backend", backend, "--threads", "2"]) == 0
    assert digests(output) == plain


@pytest.mark.slow
@pytest.mark.parametrize("backend", CLUSTERS)
def test_a_cluster_that_loses_a_worker(
    backend: str, plain: dict[str, str], documents: Path, encoder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "index"
    work = tmp_path / "index.partial" / "vectors"
    with cluster_that_loses_a_worker(backend, lambda: any(work.glob("*.npz"))) as address:
        assert main([*flags(documents, encoder, output), "--backend", backend, "--address", address]) == 0
    assert digests(output) == plain
