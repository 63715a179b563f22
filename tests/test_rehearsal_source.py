"""The small collection that miniatures are made of: draws are the same every time, and parts have nothing in common."""

import json

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.regress.rehearsal.source import Source


@pytest.fixture(scope="module")
def source():
    return Source.of(documents=500, topics=20)


def test_the_same_draws_give_the_same_source(source):
    assert Source.of(documents=500, topics=20) == source
    assert len(source.documents) == 500
    assert [text.docid for text in source.documents] == sorted({text.docid for text in source.documents})


def test_every_query_has_a_relevant_document_and_a_text_of_its_own(source):
    assert len({query.text.casefold() for query in source.queries}) == len(source.queries) > 300
    for query in source.queries:
        assert query.relevant
        assert all(0 <= one < 500 for one in query.grades)
    assert "remove duplicates from a list but keep order" in {query.text for query in source.queries}


def test_parts_have_no_query_in_common_and_shrink_together(source):
    parts = source.parts("msmarco", {"train": 80, "dev": 20})
    texts = [query.text for part in parts.values() for query in part]
    assert [len(part) for part in parts.values()] == [80, 20]
    assert len(set(texts)) == 100
    assert parts == source.parts("msmarco", {"train": 80, "dev": 20}) != source.parts("v2", {"train": 80, "dev": 20})
    many = source.parts("msmarco", {"train": 8000, "dev": 2000})
    assert 3 < len(many["train"]) / len(many["dev"]) < 5


def test_a_pool_has_every_grade(source):
    for query in source.queries[:20]:
        assert set(source.graded(query).values()) == {0, 1, 2, 3}
        assert source.graded(query).keys() >= query.grades.keys()


def test_a_collection_of_files_is_a_source_too_and_too_few_topics_are_refused(tmp_path):
    (tmp_path / "qrels").mkdir()
    corpus = [{"_id": f"d{n}", "text": f"Title {n}\nThe answer to number {n} is here. More."} for n in range(60)]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(one) + "\n" for one in corpus))
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "what is seven"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td7\t1\n")
    source = Source.of(str(tmp_path), documents=50, topics=4)
    assert source.queries[0].text == "what is seven"
    assert source.documents[source.queries[0].relevant[0]].docid == "d7"
    assert len(source.queries) == 50
    with pytest.raises(InputError, match=r"50 queries.*expected 160 or more for 20 topics"):
        Source.of(str(tmp_path), documents=50, topics=20)
