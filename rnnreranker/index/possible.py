"""`--parts auto`: every part of an index that can be made on this machine, and why others cannot."""

from __future__ import annotations

from dataclasses import replace

from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.index.make import MADE_FROM, PARTS, Recipe

AUTO = "auto"
NOT_AUTO = ("tokens", "terms")  # parts that are made where they are named alone: large ones, and words once more
ENCODERS = {
    "dense": "encoder",
    "impact": "impact_encoder",
    "tokens": "token_encoder",
}  # part → the field of a recipe that names its encoder


def obstacles(recipe: Recipe) -> dict[str, str]:
    """What stands in the way of those parts of a recipe that cannot be made here.

    Models are loaded and Java is started, to know.

    Raises:
        InputError: settings that an encoder does not have.
        UnavailableError, MissingDependencyError: an encoder that the recipe names, or no part that can be made.
    """
    lost: dict[str, str] = {}
    for part in recipe.parts:
        if (origins := MADE_FROM.get(part)) and not [one for one in origins if one in recipe.parts and one not in lost]:
            lost[part] = f"it is made from the part {' or '.join(origins)}"
            continue
        try:
            PARTS[part](replace(recipe, parts=[part])).check()
        except (UnavailableError, MissingDependencyError) as error:
            field = ENCODERS.get(part)
            if field and getattr(recipe, field) != getattr(Recipe, field):
                raise  # what was named is not left out
            lost[part] = str(error)
    if len(lost) == len(recipe.parts):
        raise UnavailableError(f"no part of an index can be made here: {said(lost)}")
    return lost


def said(lost: dict[str, str]) -> str:
    """Parts that were left out, each with its reason.

    >>> said({"bm25": "needs Java 21", "impact": "needs weights"})
    'bm25 (needs Java 21) and impact (needs weights)'
    """
    return " and ".join(f"{part} ({reason})" for part, reason in lost.items())
