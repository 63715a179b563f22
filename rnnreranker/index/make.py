"""An index of named documents in a folder: made, given the parts that it lacks, or found complete."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.phases import phase
from rnnreranker.data.fields import TITLE_AND_TEXT, fields_of
from rnnreranker.data.given import GivenDocuments
from rnnreranker.encode.params import EncoderParams, LateEncoderParams, SparseEncoderParams
from rnnreranker.encode.words.params import TermParams
from rnnreranker.index.build import Built, add_parts, check_replaceable, write_index
from rnnreranker.index.part_names import part_for
from rnnreranker.parts.base import Part
from rnnreranker.parts.bm25.part import ENGLISH, Bm25IndexParams
from rnnreranker.parts.description import describe
from rnnreranker.parts.impacts.params import ImpactParams
from rnnreranker.parts.neighbours.params import GRAPHS, GraphParams
from rnnreranker.parts.tokens.params import TokenParams


@dataclass(frozen=True)
class Recipe:
    """What an index is made of.

    Args:
        documents: an ir_datasets id, a .jsonl or .tsv file, `pydoc`, or given ones; fields: what their texts are, as of
            `load_documents`.
        parts: some of `PARTS` and `SEARCHERS`.
        encoder: of the dense part: a name, a folder or a hub id; settings: of that encoder.
        dtype: of stored vectors, "float32" or "float16".
        impact_encoder: of the impact part, a sparse encoder; impact_settings: of it; impacts: how weights are kept.
        token_encoder: of the part tokens, of late interaction; token_settings: of it; tokens: how they are searched.
        terms: what counts as a word, of the part terms; bm25: of the part bm25.
        graph: the neighbours of every document.
        taken: an index of the same documents, whose vectors, weights and tokens are taken in place of encoding.

    Raises:
        InputError: no parts, or unknown ones (with those there are).
    """

    documents: str | GivenDocuments
    parts: Sequence[str] = ("dense",)
    encoder: str = "minilm"
    settings: EncoderParams = field(default_factory=EncoderParams)
    dtype: str = "float32"
    impact_encoder: str = "splade-tiny"
    impact_settings: SparseEncoderParams = field(default_factory=SparseEncoderParams)
    impacts: ImpactParams = field(default_factory=ImpactParams)
    token_encoder: str = "minilm-tokens"
    token_settings: LateEncoderParams = field(default_factory=LateEncoderParams)
    tokens: TokenParams = field(default_factory=TokenParams)
    graph: GraphParams = field(default_factory=GraphParams)
    taken: Path | None = None
    terms: TermParams = field(default_factory=TermParams)
    bm25: Bm25IndexParams = ENGLISH
    fields: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if unknown := [part for part in self.parts if part not in (*PARTS, *SEARCHERS)]:
            raise InputError(f"{', '.join(unknown)}: no such part of an index; {part_for(unknown[0], PARTS)}")
        if not self.parts:
            raise InputError(f"no parts of an index to make; expected some of {', '.join(PARTS)}")

    def inputs(self) -> dict[str, Any]:
        """What tells one index from another, computed without loading documents or models."""
        from rnnreranker.encode.dense.encoder import digest_of
        from rnnreranker.encode.sparse.encoder import sparse_digest_of

        documents = _fingerprint_of(self.documents)
        of_encoder = [digest_of(self.encoder), self.settings.to_dict(), self.dtype] if "dense" in self.parts else None
        found: dict[str, Any] = {"documents": documents, "dense": of_encoder and fingerprint(*of_encoder)}
        if (fields := fields_of(str(self.documents), self.fields)) != TITLE_AND_TEXT:  # those there always were
            found["fields"] = list(fields)
        if "impact" in self.parts:
            of_impacts = [self.impact_settings.to_dict(), self.impacts.to_dict()]
            found["impact"] = fingerprint(sparse_digest_of(self.impact_encoder), *of_impacts)
        if "tokens" in self.parts:
            from rnnreranker.encode.late.encoder import late_digest_of

            of_tokens = [self.token_settings.to_dict(), self.tokens.to_dict()]
            found["tokens"] = fingerprint(late_digest_of(self.token_encoder), *of_tokens)
        if "bm25" in self.parts and self.bm25 != ENGLISH:  # of English ones there are descriptions without a word of it
            found["bm25"] = fingerprint(self.bm25.to_dict())
        if "terms" in self.parts:
            found["terms"] = fingerprint(self.terms.to_dict())
        return found


def _fingerprint_of(documents: str | GivenDocuments) -> str:
    """What tells the documents of a name from others: of the content of files, the name of an ir_datasets id."""
    from rnnreranker.base.files import file_digest, files_digest
    from rnnreranker.data import local, pydoc, tripclick

    if isinstance(documents, GivenDocuments):
        return documents.fingerprint
    if documents == "pydoc":
        return pydoc.fingerprint()
    source = local.source(documents, "documents")
    path = Path(source).expanduser()
    if path.is_dir():
        return files_digest(tripclick.document_files(path), path)[:16]
    return file_digest(path)[:16] if path.is_file() else source


def _dense(recipe: Recipe) -> Part:
    from rnnreranker.encode.dense.encoder import open_encoder
    from rnnreranker.parts.vectors.part import DensePart

    return DensePart(open_encoder(recipe.encoder, **recipe.settings.given()), recipe.dtype)


def _bm25(recipe: Recipe) -> Part:
    from rnnreranker.parts.bm25.part import Bm25Part

    return Bm25Part(recipe.bm25)


def _impact(recipe: Recipe) -> Part:
    from rnnreranker.encode.sparse.encoder import open_sparse_encoder
    from rnnreranker.parts.impacts.part import ImpactPart

    encoder = open_sparse_encoder(recipe.impact_encoder, **recipe.impact_settings.to_dict())
    return ImpactPart(encoder, recipe.impacts)


def _tokens(recipe: Recipe) -> Part:
    from rnnreranker.encode.late.encoder import open_late_encoder
    from rnnreranker.parts.tokens.part import TokensPart

    encoder = open_late_encoder(recipe.token_encoder, **recipe.token_settings.to_dict())
    return TokensPart(encoder, recipe.tokens)


def _terms(recipe: Recipe) -> Part:
    from rnnreranker.parts.terms.part import TermsPart

    return TermsPart(recipe.terms)


def _neighbours(recipe: Recipe) -> Part:
    from rnnreranker.parts.neighbours.part import NeighboursPart

    return NeighboursPart(recipe.graph)


def _impact_lucene(recipe: Recipe) -> Part:
    from rnnreranker.parts.impacts.lucene_part import ImpactLucenePart

    return ImpactLucenePart(recipe.impact_encoder, recipe.impacts)


def _impact_seismic(recipe: Recipe) -> Part:
    from rnnreranker.parts.impacts.seismic_part import ImpactSeismicPart

    return ImpactSeismicPart()


# name → what makes the part of a recipe
PARTS = {
    **{"dense": _dense, "bm25": _bm25, "impact": _impact, "tokens": _tokens, "terms": _terms},
    "neighbours": _neighbours,
}
TAKEN = ("dense", "impact", "tokens")  # those that are encoded, so that one index may take them from another
SEARCHERS = {"impact-lucene": _impact_lucene, "impact-seismic": _impact_seismic}  # other ways to search impacts
# part → those that it can be made from, once one of them stands in the index
MADE_FROM = {"neighbours": GRAPHS, **dict.fromkeys(SEARCHERS, ("impact",))}


@phase("making the index")
def make_index(
    recipe: Recipe, output: Path, *, threads: int | None = None, overwrite: bool = False
) -> tuple[Built, list[str]]:
    """What stands in `output` afterwards, and the parts that were made; parts that are there already stay.

    Args:
        recipe: documents and parts.
        output: the folder; an interrupted build goes on.
        threads: None = one per core; the result does not depend on it.
        overwrite: make again what is there, and replace an index of other inputs.

    Raises:
        InputError: as `write_index`; an index of other inputs in the folder, without `overwrite`, or one to be taken
            from that has other inputs or none of the parts.
        UnavailableError: a BM25 part without Java 21 or newer, an encoder that cannot be had.
    """
    inputs, makers = recipe.inputs(), PARTS | SEARCHERS
    check_replaceable(output)
    if recipe.taken is not None:
        _check_taken(recipe.taken, recipe, inputs)
    there = [] if overwrite else _parts_there(output, recipe, inputs)
    missing = [part for part in recipe.parts if part not in there]
    after = [part for part in missing if part in MADE_FROM]
    for part in after:
        possible = [recipe.graph.of] if part == "neighbours" and recipe.graph.of else MADE_FROM[part]
        if not (of := next((one for one in possible if one in (*there, *missing)), "")):
            raise InputError(
                f"{output}: {part} is made of {' or '.join(possible)}, which this index does not have; "
                f"add {possible[0]} to --parts"
            )
        if part == "neighbours":
            recipe = replace(recipe, graph=replace(recipe.graph, of=of))
    made_of = [makers[part](recipe) for part in after]
    if first := [part for part in missing if part not in after]:
        built = _make(recipe, output, first, inputs, bool(there), threads)
    else:
        built = Built(output, describe(output)["count"], 0)
    return (add_parts(output, made_of, threads=threads) if made_of else built), missing


def _make(
    recipe: Recipe, output: Path, missing: list[str], inputs: dict[str, Any], exists: bool, threads: int | None
) -> Built:
    """An index that has these parts too, which are made while the documents stream by."""
    if exists:
        inputs = {key: value for key, value in inputs.items() if value is not None}
        made = _parts(recipe, missing)
        return add_parts(output, made, threads=threads, inputs=inputs)

    from rnnreranker.data.documents import load_documents

    given = recipe.documents
    documents = iter(given.documents) if isinstance(given, GivenDocuments) else load_documents(given, recipe.fields)
    first = list(itertools.islice(documents, 1))  # an unknown name fails here, before a model is loaded
    made = _parts(recipe, missing)
    whole = itertools.chain(first, documents)
    return write_index(whole, output, made, threads=threads, name=str(given), inputs=inputs)


def _parts(recipe: Recipe, names: Sequence[str]) -> list[Part]:
    """What makes parts of a recipe; of those that the index that is taken from has, nothing is encoded."""
    made = [PARTS[name](recipe) for name in names]
    if recipe.taken is not None:
        for part in made:
            if part.name in TAKEN and part.name in describe(recipe.taken)["parts"]:
                part.extend(recipe.taken)
    return made


def _parts_there(output: Path, recipe: Recipe, inputs: dict[str, Any]) -> list[str]:
    """The parts that `output` has; none where there is no index.

    Raises:
        InputError: an index of other documents or, where both have such a part, of other vectors or impacts.
    """
    if not output.is_dir() or not any(output.iterdir()):
        return []
    if differing := _differing(output, recipe, inputs):
        raise InputError(
            f"{output}: holds an index of {differing}; give --overwrite to replace it, or another --output"
        )
    return [part for part in describe(output).get("parts", {}) if _stands(output, part, recipe)]


def _check_taken(index: Path, recipe: Recipe, inputs: dict[str, Any]) -> None:
    """Look that an index has what can be taken of it.

    Raises:
        InputError: no index, one without such a part of the recipe, one of other inputs.
    """
    parts = [part for part in TAKEN if part in recipe.parts]
    if not {*parts} & {*describe(index).get("parts", {})}:
        raise InputError(
            f"--from-index {index}: has none of {', '.join(TAKEN)} that --parts names; give an index made by "
            "python -m rnnreranker.index, of the same documents"
        )
    if differing := _differing(index, recipe, inputs):
        raise InputError(f"--from-index {index}: holds an index of {differing}; leave it out, and they are encoded")


def _differing(index: Path, recipe: Recipe, inputs: dict[str, Any]) -> str:
    """Which inputs of an index are not those of a recipe, where both have such a part, in the words of an error."""
    described = describe(index)
    parts = described.get("parts", {})
    dense, impact, tokens = (parts.get(part, {}) for part in TAKEN)
    words, language = parts.get("terms", {}).get("settings", {}), parts.get("bm25", {}).get("language", "en")
    named = described.get("documents", "unknown")
    changed = "documents that are no longer those of" if named == str(recipe.documents) else "other documents:"
    before = described.get("inputs", {})
    others = {
        "documents": f"{changed} {named}",
        "fields": f"other fields of documents ({','.join(before.get('fields', TITLE_AND_TEXT))})",
        "dense": f"other vectors ({dense.get('encoder', {}).get('name')}, {dense.get('dtype')})",
        "impact": f"other impacts ({impact.get('encoder', {}).get('name')}, factor {impact.get('factor')})",
        "bm25": f"words of another language ({language})",
        "terms": f"other words ({words.get('language')}, stemmer {words.get('stemmer')})",
        "tokens": f"other tokens ({tokens.get('encoder', {}).get('name')}, searched by {tokens.get('search')})",
    }
    shared = [part for part in (*TAKEN, "bm25", "terms") if part in recipe.parts and part in parts]
    compared = ["documents", "fields", *shared]
    return " and ".join(others[part] for part in compared if before.get(part) != inputs.get(part))


def _stands(output: Path, part: str, recipe: Recipe) -> bool:
    """Whether a part that an index describes is there and, where it is made of another, is of that."""
    if part == "neighbours" and part in recipe.parts:
        from rnnreranker.parts.neighbours.part import has_graph

        return has_graph(output, recipe.graph)
    if part == "impact-lucene" and part in recipe.parts:
        from rnnreranker.parts.impacts.lucene_part import has_lucene

        return has_lucene(output)
    if part == "impact-seismic" and part in recipe.parts:
        from rnnreranker.parts.impacts.seismic_part import has_seismic

        return has_seismic(output)
    return part not in ("bm25", "neighbours", *SEARCHERS) or (output / part).is_dir()
