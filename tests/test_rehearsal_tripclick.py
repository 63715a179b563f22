"""The miniature of TripClick, read from the unpacked release, and from its archive where ir_datasets keeps it."""

import pytest

from rnnreranker.regress.rehearsal.datasets.families import documents_of, write_datasets
from rnnreranker.regress.rehearsal.source import Source
from tests.loaded_apart import loaded

pytest.importorskip("ir_datasets")
NAMES = [f"tripclick-{group}-{split}" for group in ("head", "torso", "tail") for split in ("train", "val", "test")]


@pytest.fixture(scope="module")
def source():
    return Source.of(documents=300, topics=12)


@pytest.mark.parametrize("unpacked", [True, False])
def test_documents_topics_and_both_kinds_of_judgements_are_read(source, tmp_path, unpacked):
    variables = write_datasets(source, tmp_path, ["tripclick", "tripclick-head-test"])
    if not unpacked:
        del variables["TRIPCLICK_HOME"]
    kinds = [*NAMES, "tripclick-head-train-dctr", "tripclick-head-val-dctr", "tripclick-head-test-dctr"]
    files = [str(tmp_path / name) for name in ("tripclick-train", "tripclick-head-torso-train")]
    said = loaded(
        variables,
        "documents tripclick",
        *(f"topics {name}" for name in NAMES),
        *(f"qrels {name}" for name in kinds),
        *(f"topics {name}.tsv" for name in files),
        *(f"qrels {name}.txt" for name in files),
    )
    made = [[one.docid, one.text] for one in documents_of(source, "tripclick")]
    assert [one[0] for one in said["tripclick"]] == [one[0] for one in made]
    assert not unpacked or said["tripclick"] == made
    asked = [set(said[f"topics {name}"]) for name in NAMES]
    assert all(asked)
    assert len(set().union(*asked)) == sum(map(len, asked))
    for name in kinds:
        topics = said["topics " + name.removesuffix("-dctr")]
        assert {qid for qid, _, _ in said[f"qrels {name}"]} == set(topics)
        grades = {grade for _, _, grade in said[f"qrels {name}"]}
        assert grades == {0, 1, 2, 3} if "dctr" in name else 1 in grades <= {0, 1}
    training = [set(said[f"topics tripclick-{group}-train"]) for group in ("head", "torso", "tail")]
    assert set(said[f"topics {files[0]}.tsv"]) == set().union(*training)
    assert set(said[f"topics {files[1]}.tsv"]) == training[0] | training[1]
    assert {qid for qid, _, _ in said[f"qrels {files[1]}.txt"]} == training[0] | training[1]
