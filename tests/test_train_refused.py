"""What the command train refuses: one row for each kind of fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import refusal_with
from tiny_encoder import make_masked, write_text_world

from rnnreranker.train.__main__ import main

COSINES = "expected another; it is of cosines, for --model dual"


@pytest.fixture(scope="module")
def world(module_path: Path) -> Path:
    folder = write_text_world(module_path)
    make_masked(folder / "tiny")
    return folder


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("crss", "--model crss: crss: no such trained-model; did you mean cross?"),
        ("cross:refresh_every=3", "--model cross: no setting refresh_every, "),
        ("cross --scorer encoder", "--scorer: expected none with --model cross"),
        ("query --scorer mlp", "--scorer mlp: scorer='mlp': expected one of "),
        ("query --scorer encoder:layers=3", "--scorer encoder:layers=3: no setting layers, "),
        ("cross --encoder minilm:pooling=cls", "no setting with --model cross pooling, known: none"),
        ("cross --encoder no-such", "encoder no-such: no such folder or model"),
        ("cross --learning-rate 0", "--model cross: --learning-rate 0.0: expected a finite number > 0"),
        ("cross:learning_rate=1 --learning-rate 2", "and --learning-rate: learning_rate twice"),
        ("cross:loss=lce --loss kl", "cross:loss=lce and --loss: loss twice; give it once"),
        ("cross --loss klm", "--loss klm: klm: no such loss; did you mean kl?"),
        ("cross --loss lce:margin=2", "--loss lce:margin=2: no setting margin"),
        ("cross --loss info-nce", "the loss info-nce: takes the candidates of other queries"),
        ("cross --loss distance", COSINES),
        ("query --loss distance", COSINES),
        ("late --loss triplet", COSINES),
        ("cross --preset lec", "preset lec: not known"),
        ("cross --negatives x.tsv", "give --labels or --negatives, one of them"),
        ("cross --validation-run x", "--validation-topics, --validation-qrels missing"),
        ("cross:group_size=20", "no query has 19 negatives for a group of 20: the most that one has is 11"),
        ("cross:group_size=1", "group_size=1: expected an integer >= 2, as the loss lce compares"),
        ("dual:max_length=65", "max_length=65: expected an integer <= 64"),
        ("dual --loss distance:alpha=1.5", "alpha=1.5: expected a finite number >= 0 and <= 1"),
        ("dual:inverse_temperature=9", "inverse_temperature=9.0: expected none with the loss distance"),
        ("dual:loss=lce,label_scale=cosine", "label_scale=cosine: expected none with the loss lce"),
        ("dual:in_batch_negatives=yes --preset f-ebr", "in_batch_negatives=True: expected none with the loss triplet"),
        ("late:loss=lce,in_batch_negatives=true,batch_teacher=true", "batch_teacher=True: expected none with the loss"),
        ("late:loss=kl,batch_teacher=true", "batch_teacher=True: expected with in_batch_negatives"),
        ("late:document_length=65,dimension=16", "document_length=65: "),
        ("late:similarity=cosine", "similarity='cosine': expected one of maxsim, l2"),
        ("sparse:architecture=doc,lambda_q=0.1", "lambda_q=0.1: expected none with the architecture doc"),
        ("query:plateau_patience=9", "plateau_patience=9: expected none with the schedule linear"),
        ("query:neutrality_cutoff=9", "neutrality_cutoff=9: expected none with neutrality_weight=0"),
        ("query:loss=margin-mse,random_negatives=3", "random_negatives=3: expected none with the loss margin-mse"),
        ("query", "--index missing: expected with --model query"),
        ("masked", "expected none with --model masked"),
        ("term-scorer --loss kl", "--model term-scorer: no setting loss, "),
        ("term-scorer --documents x.tsv", "--documents: expected none with --model term-scorer"),
    ],
)
def test_what_is_refused(world: Path, argv: str, said: str) -> None:
    model, *more = argv.split()
    given = f"--topics {world}/topics.tsv --labels {world}/labels.parquet --encoder {world}/tiny".split()
    given += f"--output {world}/out --device cpu".split()
    texts = [] if model.startswith(("query", "term")) else ["--documents", f"{world}/documents.jsonl"]
    with refusal_with(said):
        main(["--model", model, *given, *texts, *more])
    assert not (world / "out").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("layers=1,hidden_size=16,heads=2,validation_share=1", "60 queries or texts cannot be split into"),
        ("layers=1,hidden_size=16,heads=2,max_length=600", "expected an integer <= 512"),
        ("hidden_size=16,heads=3", "expected a multiple of heads=3"),
    ],
)
def test_new_language_models(world: Path, settings: str, said: str) -> None:
    texts = f"--documents {world}/documents.jsonl --encoder none --output {world}/out".split()
    with refusal_with(said):
        main(["--model", f"masked:{settings}", *texts])
