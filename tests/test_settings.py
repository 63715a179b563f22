"""Settings: limits, flags, presets and argv of one dataclass."""

from __future__ import annotations

import argparse
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import pytest
from refusals import refusal

from rnnreranker.base import command
from rnnreranker.base.settings import Params, hints_of, is_file_name, sections_of, setting


@dataclass(frozen=True)
class Wing(Params):
    section: ClassVar[str] = "rnn"

    span: int = setting(3, "metres", at_least=1)
    share: float = setting(0.5, "of 100%", at_least=0, at_most=1)
    rate: float | None = setting(None, "a second", above=0)
    kind: Literal["flat", "swept"] | None = setting("flat", "of wing")
    folded: bool = setting(False, "on the ground")
    normalize: bool | None = setting(None, "length 1", flag="l2-norm")


Wing.presets = {"glider": Wing(span=20)}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"span": 0}, "span=0: expected an integer >= 1"),
        ({"span": True}, "span=True: expected an integer >= 1"),
        ({"span": 2.5}, "span=2.5: expected an integer >= 1"),
        ({"share": math.nan}, "share=nan: expected a finite number >= 0 and <= 1"),
        ({"rate": 0.0}, "rate=0.0: expected a finite number > 0 or none"),
        ({"rate": "fast"}, "rate='fast': expected a finite number > 0 or none"),
        ({"kind": "bent"}, "kind='bent': expected one of flat, swept or none"),
        ({"folded": "maybe"}, "folded='maybe': expected true or false"),
        ({"span": 0, "folded": 1}, "span=0: expected an integer >= 1; folded=1: expected true or false"),
    ],
)
def test_every_limit_is_said(values: dict[str, object], said: str) -> None:
    with refusal(f"^{re.escape(said)}$"):
        Wing(**values)  # type: ignore[arg-type]


def parsed(*argv: str) -> argparse.Namespace:
    parser = command.parser("test", "")
    parser.add_argument("--preset")
    command.add_flags(parser, Wing)
    return parser.parse_args(argv)


def test_flag_before_preset_before_default(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("rnn: {span: 7, rate: 1e-5}\nlabels: {boost: 2}\n")
    assert command.request(parsed("--share", "1"), Wing) == Wing(share=1.0)
    typed = command.given(parsed("--kind", "none", "--l2-norm", "--no-folded"), Wing)
    assert replace(Wing.named(tmp_path / "mine.yaml"), **typed) == Wing(
        span=7, rate=1e-5, kind=None, folded=False, normalize=True
    )
    assert [*sections_of(tmp_path / "mine.yaml")] == ["rnn", "labels"]
    (tmp_path / "mine.yaml").write_text("labels: {boost: 2}\n")
    with refusal(r"mine\.yaml: rnn: no such section; it has labels"):
        Wing.named(tmp_path / "mine.yaml")


def test_errors_name_the_flag_that_was_typed() -> None:
    with refusal(r"^--span 0: expected an integer >= 1$"):
        command.request(parsed("--span", "0"), Wing)


@pytest.mark.parametrize("text", ["./my", "my/preset", "my.yaml", "my.yml"])
def test_one_rule_says_what_a_file_is(text: str) -> None:
    """`--preset ./my` was a file to one command and a preset's name to two others."""
    assert is_file_name(text)
    with refusal("no such"):
        Wing.named(text)


def test_unknown_presets_and_keys(tmp_path: Path) -> None:
    with refusal(r"preset glidr: not known.*did you mean glider\?"):
        Wing.named("glidr")
    (tmp_path / "bad.yaml").write_text("spam: 1\n")
    with refusal(r"bad.yaml: no setting spam, did you mean span\?"):
        Wing.named(str(tmp_path / "bad.yaml"))


def test_settings_that_a_subclass_adds_and_changes() -> None:
    """A plain value is another default, with the limits as they were."""

    @dataclass(frozen=True)
    class Glider(Wing):
        rate: float | None = 2.0
        first: int = setting(1, "of them")
        second: int = setting(2, "of them")
        last: int = setting(9, "of all")

    @dataclass(frozen=True)
    class Kite(Glider):
        string: int = setting(5, "metres")

    listed = [*hints_of(Wing), "first", "second", "last"]
    assert list(Glider().to_dict()) == list(hints_of(Glider)) == listed
    assert list(Kite().to_dict()) == [*listed, "string"]
    assert (Wing().rate, Glider().rate, Kite(rate=3.0).rate) == (None, 2.0, 3.0)
    with refusal(r"^rate=0\.0: expected a finite number > 0 or none$"):
        Kite(rate=0.0)
