"""Pages of prose: every measured figure is that of a record, and a sentence that the records contradict is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from places import DOCS
from refusals import refusal

from rnnreranker.base.record import Record, write_records
from rnnreranker.regress.pages.prose import apart, claim, interval, pick, words, write_prose
from rnnreranker.regress.plans.maker import chosen_plan
from rnnreranker.regress.specs.entries import UNITS, Condition, IndexEntry, Model, QuerySet, Spec
from rnnreranker.regress.specs.spec import WORKS, read_spec

RUN = Record("run", "small", "dense", {"query_set": "a", "values": {"binary": {"RR@10": 0.25}}}, date="2026-01-01")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "results").mkdir()
    write_records(tmp_path / "results" / "small.json", [RUN])
    return tmp_path


def written(folder: Path, source: str) -> str:
    (folder / "source" / "page.md.j2").write_text(source, encoding="utf-8")
    (page,) = write_prose(folder / "source", folder / "docs", folder / "results")
    return page.read_text(encoding="utf-8")


def test_a_page_takes_its_figures_from_records(folder: Path) -> None:
    page = written(folder, 'RR@10 is {{ fixed(value("small", "dense", "RR@10"), 3) }} & <more>\n')
    first, second = page.splitlines()
    assert first.startswith("<!-- Written by `python -m rnnreranker.regress --docs` from docs/source/page.md.j2.")
    assert second == "RR@10 is 0.250 & <more>"


def test_the_record_made_last_is_shown(folder: Path) -> None:
    again = dataclasses.replace(
        RUN, outcome={"query_set": "a", "values": {"binary": {"RR@10": 0.5}}}, date="2026-02-02"
    )
    write_records(folder / "results" / "again.json", [again])
    assert "is 0.5\n" in written(folder, 'is {{ value("small", "dense", "RR@10") }}\n')


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('{{ record("study", "small", "dense") }}', r"0 records of a study 'dense' of spec 'small'; expected one"),
        ('{{ value("small", "dense", "RR@10", "b") }}', r"0 records of a run 'dense' of spec 'small' of query set b"),
        ('{{ claim(1 > 2, "one is more than two") }}', r"the records contradict 'one is more than two'; write"),
        ("{{ nothing_there }}", r"'nothing_there' is undefined"),
    ],
)
def test_a_source_that_the_records_do_not_bear_is_refused(folder: Path, source: str, said: str) -> None:
    with refusal(rf"page\.md\.j2: {said}"):
        written(folder, source)


def test_figures_in_words() -> None:
    row = {"gain": -0.25, "low": -0.5, "high": 0.0}
    assert (interval(row, 2), apart(row)) == ("-0.25 [-0.50, +0.00]", False)
    assert (words(0), words(12), words(13)) == ("no", "twelve", "13")
    assert claim(True, "it is so") == ""
    with refusal(r"2 rows with \{'a': 1\}; expected one"):
        pick([{"a": 1}, {"a": 1}], a=1)


def test_the_pages_on_specs_have_every_key_and_their_example_is_a_spec(tmp_path: Path) -> None:
    page = "".join((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("specs", "spec-keys"))
    declared = {name for kind in (Spec, IndexEntry, QuerySet, Model, Condition) for name in kind.model_fields}
    keys = {*declared, *WORKS, "agreement", "files", *UNITS} - {"schema_", "id", "links"} | {"schema"}
    assert sorted(key for key in keys if f"`{key}`" not in page) == []
    (tmp_path / "my.yaml").write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    spec = read_spec(tmp_path / "my.yaml", data=True)
    made = [step.output.name for step in chosen_plan(spec, spec.query_sets.values(), (), tmp_path).steps]
    assert {f"{condition.id}.my-test.txt" for condition in spec.conditions.values()} < {*made}
