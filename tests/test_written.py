"""A method with its settings in one line: read, written, checked; and what messages call an argument."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusal, refusal_with

from rnnreranker.base.errors import argument, of_command
from rnnreranker.base.method import choose, described, listed
from rnnreranker.base.settings import Written, read_joined
from rnnreranker.rnn import RnnParams

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
VALUES = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12)


@settings(deadline=None)
@given(
    NAMES, st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(lambda key: key != "preset"), VALUES)
)
def test_what_is_written_is_read(name: str, params: dict[str, str]) -> None:
    written = Written(name, dict(params))
    assert Written.read(str(written)) == written
    assert read_joined(f"{written}+bm25") == [written, Written("bm25")]


@pytest.mark.parametrize(
    ("form", "read"),
    [
        ("rnn", Written("rnn")),
        ("rnn:k=5,preset=tas-b", Written("rnn", {"k": "5"}, "tas-b")),
        ({"rnn": {"k": 5, "preset": "tas-b"}}, Written("rnn", {"k": 5}, "tas-b")),
        ({"rnn": None}, Written("rnn")),
        ("C:/models/mine", Written("C:/models/mine")),
        ("./a:b:pooling=cls", Written("./a:b", {"pooling": "cls"})),
        (":pooling=cls", Written("", {"pooling": "cls"})),
        (r'x:prompt="say \"a, b\": "', Written("x", {"prompt": 'say "a, b": '})),
    ],
)
def test_forms(form: object, read: Written) -> None:
    assert Written.read(form) == read  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "form", ["rnn:k=5,", "rnn:k=5,k=6", 'rnn:k="5', "rnn:k=5,tau", "", {"a": 1}, {"a": {}, "b": {}}, 3]
)
def test_other_forms_are_refused(form: object) -> None:
    with refusal(r"expected|twice"):
        Written.read(form)  # type: ignore[arg-type]


def test_a_chosen_method_has_its_settings() -> None:
    chosen = choose("reranker", "rnn:k=5,preset=tas-b,from=neighbours,normalize=none")
    assert chosen.params == RnnParams.preset("tas-b").__class__(
        **RnnParams.preset("tas-b").to_dict() | {"k": 5, "normalize": None}
    )
    assert (chosen.source, chosen.queries, chosen.needs) == (
        "neighbours",
        None,
        frozenset({"neighbours"}),
    )
    assert choose("reranker", {"rnn": {"k": 5}}).params == choose("reranker", "rnn:k=5").params


def test_settings_of_the_method_inside_stand_beside_it() -> None:
    flat = choose("reranker", "prf:feedback=colbert,fb_docs=2,context=100")
    assert (flat.params.feedback, flat.params.context) == ("colbert:fb_docs=2", 100)
    assert flat.needs == frozenset({"query tokens", "tokens"})
    assert choose("reranker", "prf").needs == frozenset({"run scores", "query vectors", "vectors"})
    nested = {"prf": {"feedback": {"colbert": {"fb_docs": 2}}, "context": 100}}
    assert choose("reranker", nested).params == flat.params == choose("reranker", str(Written.read(nested))).params
    taught = choose("labeler", 'teacher:teacher=ensemble,models="a,b",context=9').params
    assert (taught.teacher, taught.context) == ('ensemble:models="a,b"', 9)
    assert choose("labeler", "teacher:teacher=rnn,preset=tas-b").params.chosen.params.k == 21


@pytest.mark.parametrize(
    ("kind", "form", "message"),
    [
        ("reranker", "rn", "rerank=rn: rn: no such reranker; did you mean rnn?"),
        ("reranker", "rnn:k=five", "rerank=rnn:k=five: k='five': expected an integer >= 1"),
        (
            "reranker",
            "rnn:from=graph",
            "rerank=rnn:from=graph: from=graph: expected one of vectors, neighbours, tokens",
        ),
        ("reranker", "mmr:from=neighbours", "no setting from"),
        ("expander", "ladr:ladr=adaptive", "no setting ladr"),
        ("reranker", "prf:depth=3", "rerank=prf:depth=3: no setting depth"),
        ("labeler", "collective:prf_positives=true", "no setting prf_positives"),
        ("reranker", "mmr:preset=tas-b", "preset tas-b: not known; give a YAML file or a known one, known: none"),
    ],
)
def test_what_cannot_be_chosen(kind: str, form: str, message: str) -> None:
    with refusal_with(message):
        choose(kind, form, "rerank")


def test_messages_name_flags_in_a_command_and_arguments_in_python() -> None:
    assert argument("hits", 5) == "hits=5"
    with of_command():
        assert (argument("hits", 5), argument("retrieve", "bm25")) == ("--hits 5", "--retriever bm25")
    assert argument("retrieve") == "retrieve"


def test_lists_of_methods() -> None:
    lines = list(listed())
    assert "reranker:" in lines
    for name in (line.split()[0] for line in lines if line.startswith("  ")):
        assert list(described(name)), name
    assert any(line.startswith("  rnn ") for line in lines)
    assert any(line.startswith("  k=10  k: neighbours") for line in described("rnn"))
    with refusal(r"rn: no such method, did you mean .*rnn\?"):
        list(described("rn"))
