"""Of CPython 3.11 to 3.13: the flags that a parser has."""

from __future__ import annotations

from typing import Any

USED = {
    "argparse.ArgumentParser": ("_get_optional_actions",),
}


def flags_of_parser(parser: Any) -> list[str]:
    return [flag for action in parser._get_optional_actions() for flag in action.option_strings]
