"""`index --append`: an index that has more documents, as if it had been made of all of them."""

from __future__ import annotations

import itertools
from pathlib import Path

from rnnreranker.base.device import EXACT, devices_of
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.backends import check_backend
from rnnreranker.base.process.phases import phase
from rnnreranker.data.fields import TITLE_AND_TEXT
from rnnreranker.index.build import Built, write_index
from rnnreranker.index.request import IndexRequest, documents_mark
from rnnreranker.parts.base import describe, part, stored_settings
from rnnreranker.parts.texts import FOLDER, documents_of
from rnnreranker.parts.vectors.ids import read_ids
from rnnreranker.parts.vectors.part import OWN, documents_of_vectors


@phase("adding documents to the index")
def extend_index(
    output: Path,
    documents: str,
    *,
    threads: int | None = None,
    backend: str = "threads",
    address: str | None = None,
    device: str | None = None,
    compute_dtype: str = EXACT,
) -> tuple[Built, list[str]]:
    """Add documents to an index, behind those that it has, and to every part; the index that stands there then.

    It has the bytes of an index that is made of all documents at once, except that Lucene numbers its
    files anew every time and that its description names both sources. It appears whole; a killed work goes on.

    Args:
        output: the folder of the index; documents: their source, as of `load_documents`, whose
            fields are those of the index.
        threads: None = one per core; the result does not depend on it.
        backend, address: who makes blocks of the graph, as `write_graph`.
        device, compute_dtype: where the new ones are encoded, as of `devices_of`.

    Raises:
        InputError: no index, documents of another kind than its own, a docid that it has already (with its line), no
            documents, an encoder that has changed; as `write_index`.
        UnavailableError: an encoder that cannot be had, a Lucene part without Java.
    """
    check_backend(backend, address)
    devices = devices_of(device, compute_dtype)
    described = describe(output)
    if not described:
        raise InputError(f"{output}: no index to add to; make one with --documents")
    texts = (output / FOLDER).is_dir()
    request = IndexRequest(
        documents, list(described["parts"]), tuple(described["inputs"].get("fields", TITLE_AND_TEXT))
    )
    if request.without_texts == texts:
        kind = "texts, {} has vectors alone" if texts else "vectors alone, {} has texts"
        raise InputError(f"{output}: an index of {kind.format(documents)}; expected documents of the same kind")
    known = set(read_ids(output / "docid").names)
    settings = stored_settings(output, described["parts"])
    encoder = settings["dense"].encoder if "dense" in settings else ""
    for position, document in enumerate(request.read(), 1):
        if document.vector is not None and encoder not in ("", OWN):
            raise InputError(f"{document.where}: has a vector, {output} has vectors of {encoder}; leave vectors out")
        if document.docid in known:
            where = document.where or f"{documents}: document {position}"
            raise InputError(f"{where}: docid {document.docid} is in {output} already; every document needs its own")
    parts = [
        part(name).make(settings[name], settings) for name in sorted(settings, key=lambda name: part(name).depth())
    ]
    for one in parts:
        one.backend, one.address, one.devices = backend, address, devices
        one.extend(output)
    inputs = dict(described["inputs"])
    inputs["documents"] = fingerprint(inputs.get("documents"), documents_mark(documents))
    old = documents_of(output) if texts else documents_of_vectors(output)
    whole = itertools.chain(old, request.read())
    name = f"{described.get('documents', '')} + {documents}"
    built = write_index(whole, output, parts, threads=threads, name=name, inputs=inputs, texts=texts)
    return built, [one.name for one in parts]
