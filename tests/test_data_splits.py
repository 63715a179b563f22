"""Questions in parts for training, validation and test: against parts worked out from hashes, and what is refused."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.data import splits
from rnnreranker.data.documents import load_documents
from rnnreranker.data.local import kept_at
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics

TEXTS = {f"q{number}": f"Question number {number}?" for number in range(10)}


def test_parts_are_fifths_of_the_hashed_texts() -> None:
    hashed = sorted(TEXTS, key=lambda qid: hashlib.sha256(TEXTS[qid].casefold().encode()).hexdigest())
    fifths = [set(hashed[place : place + 2]) for place in range(0, 10, 2)]
    found = splits.parts_of(TEXTS)
    assert list(found) == splits.split_names()
    assert len(found) == 2 * 4 * 3
    for fold in range(1, 5):  # what the module's first lines say, written another way
        one, other = fifths[fold - 1], fifths[fold]
        for setting, of in (
            ("standard", (set(TEXTS) - one - other, other, one)),
            ("cold", (one, other, set(TEXTS) - one - other)),
        ):
            assert tuple(set(found[f"{setting}-{fold}-{part}"]) for part in ("train", "validation", "test")) == of


def test_parts_depend_on_the_texts_alone() -> None:
    found = splits.parts_of(TEXTS)
    mixed = list(TEXTS.items())
    random.Random(3).shuffle(mixed)
    assert splits.parts_of(dict(mixed)) == found
    other = {f"x{qid}": f"  {text.upper()} " for qid, text in TEXTS.items()}
    renamed = {split: [f"x{qid}" for qid in qids] for split, qids in found.items()}
    assert splits.parts_of(other) == renamed
    twice = splits.parts_of(TEXTS | {f"again-{qid}": text.replace(" ", "\n") for qid, text in TEXTS.items()})
    for split, qids in twice.items():
        assert sorted(qids) == sorted([*found[split], *(f"again-{qid}" for qid in found[split])])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten questions with a relevant sentence, one without, judgements of grade 0 beside."""
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    sentences = [json.dumps({"_id": f"p#s{number}", "text": f"It is {number}."}) for number in range(10)]
    (folder / "corpus.jsonl").write_text("\n".join(sentences))
    topics = TEXTS | {"none": "Never answered?"}
    (folder / "queries.jsonl").write_text(
        "\n".join(json.dumps({"_id": qid, "text": text}) for qid, text in topics.items())
    )
    lines = [f"q{number}\tp#s{number}\t1\nq{number}\tp#s{(number + 1) % 10}\t0" for number in range(10)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines, "none\tp#s0\t0"]))
    return folder


def test_a_folder_has_these_splits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for split in ("cold-1-train", "standard-4-test"):
        name, qids = f"{folder}:{split}", splits.parts_of(TEXTS)[split]
        assert load_topics(name) == {qid: TEXTS[qid] for qid in TEXTS if qid in qids}
        judged = load_qrels(name)
        assert list(dict.fromkeys(judged["query_id"])) == qids
        assert len(judged) == 2 * len(qids)
        assert sorted(judged["relevance"]) == [0] * len(qids) + [1] * len(qids)
    name = f"{folder}:cold-2-test"
    assert [one.docid for one in load_documents(name)] == [one.docid for one in load_documents(folder)]
    assert kept_at(name) == folder
    monkeypatch.setenv("RNNRERANKER_COLLECTIONS", str(folder.parent))
    for other in ("collections/mine:cold-2-test", f"reqa:{name}"):
        assert load_topics(other) == load_topics(name)


def test_what_splits_cannot_be_made_of(folder: Path) -> None:
    with refusal(r"x: 4 different questions with a relevant document; five parts need"):
        splits.parts_of(dict(list(TEXTS.items())[:4]), "x")
    name, queries = f"{folder}:cold-1-test", folder / "queries.jsonl"
    content = queries.read_text()
    queries.write_text(content.replace('"q3"', '"other"'))
    with refusal(r"queries\.jsonl: no question q3, which the qrels of .* judge"):
        load_topics(name)
    queries.unlink()
    with refusal(r"no queries\.jsonl in this folder"):
        load_qrels(name)
