"""`index --add`: an index that has more documents, as if it had been made of all of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.phases import phase
from rnnreranker.data.documents import load_documents
from rnnreranker.data.fields import TITLE_AND_TEXT
from rnnreranker.encode.params import EncoderParams, LateEncoderParams, SparseEncoderParams
from rnnreranker.encode.words.params import TermParams
from rnnreranker.index.build import Built, write_index
from rnnreranker.index.make import MADE_FROM, PARTS, SEARCHERS, Recipe
from rnnreranker.parts.bm25.part import Bm25IndexParams
from rnnreranker.parts.description import describe
from rnnreranker.parts.impacts.params import ImpactParams
from rnnreranker.parts.neighbours.params import GraphParams
from rnnreranker.parts.texts import documents_of
from rnnreranker.parts.tokens.params import TokenParams
from rnnreranker.parts.vectors.ids import read_ids


@phase("adding documents to the index")
def extend_index(
    output: Path,
    documents: str,
    *,
    threads: int | None = None,
    backend: str = "threads",
    cluster: str | None = None,
) -> tuple[Built, list[str]]:
    """Add documents to an index, behind those that it has, and to every part; the index that stands there then.

    It has the bytes of an index that is made of all documents at once, except that Lucene and Seismic number their
    files anew every time and that its description names both sources. It appears whole; a killed work goes on.

    Args:
        output: the folder of the index; documents: their source, as of `load_documents`, whose
            fields are those of the index.
        threads: None = one per core; the result does not depend on it.
        backend, cluster: who makes blocks of the graph, as `write_graph`.

    Raises:
        InputError: no index with texts, a docid that it has already (with its line), no documents, an encoder that has
            changed; as `write_index`.
        UnavailableError: an encoder that cannot be had, a Lucene part without Java.
    """
    described = describe(output)
    if not described or not (output / "corpus").is_dir():
        raise InputError(f"{output}: no index with texts to add to; make one with --documents")
    fields = described["inputs"].get("fields", TITLE_AND_TEXT)
    known = set(read_ids(output / "docid").names)
    for position, document in enumerate(load_documents(documents, fields), 1):
        if document.docid in known:
            where = document.where or f"{documents}: document {position}"
            raise InputError(f"{where}: docid {document.docid} is in {output} already; every document needs its own")
    recipe = _recipe(output, described, backend, cluster)
    parts = [(PARTS | SEARCHERS)[name](recipe) for name in recipe.parts]
    for part in parts:
        part.extend(output)
    inputs = dict(described["inputs"])
    inputs["documents"] = fingerprint(inputs.get("documents"), Recipe(documents).inputs()["documents"])
    whole = itertools.chain(documents_of(output), load_documents(documents, fields))
    name = f"{described.get('documents', '')} + {documents}"
    return write_index(whole, output, parts, threads=threads, name=name, inputs=inputs), list(recipe.parts)


def _recipe(output: Path, described: dict[str, Any], backend: str, cluster: str | None) -> Recipe:
    """What the parts of an index were made of, those first that others are made from."""
    parts = described["parts"]
    dense, impact, tokens, graph = (parts.get(name, {}) for name in ("dense", "impact", "tokens", "neighbours"))
    try:
        factor = impact.get("factor", 100.0)
        of_dense, of_impact, of_tokens = (part.get("encoder", {}) for part in (dense, impact, tokens))
        settings = EncoderParams(**of_dense.get("settings", {}))
        return Recipe(
            "",
            sorted(parts, key=lambda name: name in MADE_FROM),
            of_dense.get("name", "minilm"),
            settings,
            dense.get("dtype", "float32"),
            of_impact.get("name", "splade-tiny"),
            SparseEncoderParams(**of_impact.get("settings", {})),
            ImpactParams("float") if factor is None else ImpactParams("whole", factor),
            of_tokens.get("name", "minilm-tokens"),
            LateEncoderParams(**of_tokens.get("settings", {})),
            TokenParams(tokens.get("wanted", "auto")),
            GraphParams(graph.get("wanted"), graph.get("of"), graph.get("search"), backend, cluster),
            terms=TermParams(**parts.get("terms", {}).get("settings", {})),
            bm25=Bm25IndexParams(**parts.get("bm25", {})),
        )
    except (TypeError, AttributeError):
        raise InputError(
            f"{output / 'rnnreranker.json'}: does not describe parts as this version does; make the index again"
        ) from None
