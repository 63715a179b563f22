"""An index of named documents in a folder: made, completed or extended."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rnnreranker.base.command import check_apart, phase, say
from rnnreranker.base.device import EXACT
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError, argument
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import Share
from rnnreranker.data.fields import TITLE_AND_TEXT
from rnnreranker.index.build import Built, add_parts, building, check_replaceable, encode_ahead, work_of, write_index
from rnnreranker.index.request import AUTO, IndexRequest, documents_mark
from rnnreranker.parts.base import Part, describe, part, parts, parts_at, stored_parts, stored_settings
from rnnreranker.parts.texts import FOLDER, documents_of
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.parts.vectors.part import OWN, documents_of_vectors


def encoded_parts() -> list[str]:
    return [name for name, one in parts().items() if one.encoder]


@phase("making the index")
def make_index(request: IndexRequest, output: Path) -> Built:
    """Make the missing parts of an index; returns what it is then.

    Without documents only parts that are made of others, such as a graph. An interrupted build resumes.

    Raises:
        InputError: as `write_index`; an index of other inputs without `overwrite`; `from_index` with other inputs or
            none of the parts.
        UnavailableError: a BM25 part without Java 21 or newer, an encoder that is not available.
    """
    if request.documents:
        check_replaceable(output)
        read = {"documents": request.documents, "from_index": request.taken}
        check_apart(read | {"output": output}, replaces=output)
        request = possible(request, output)
    with building(output):  # or what is missing may be there when it is this process's turn
        inputs, settings, there, missing = _missing(request, output)
        documents = request.read() if request.documents else None  # fails before a model is loaded
        made, threads = _makers(request, missing, settings, request.taken), request.threads
        if not made:
            return Built(output, _count(output), 0, [])
        if documents is not None and request.overwrite and (gone := sorted({*parts_at(output)} - {*request.chosen})):
            lost = f"{argument('overwrite')} replaces the whole index and drops its {' and '.join(gone)}"
            say(f"{output}: {lost}; name all parts in {argument('parts')} to make them again")
        if documents is not None and request.backend != "threads":
            new = [one for one in made if request.taken is None or one.name not in describe(request.taken)["parts"]]
            encode_ahead(request.read(), new, request, work_of(output))
        if documents is None or there:
            inputs = {key: value for key, value in inputs.items() if value is not None}
            return add_parts(output, made, documents, threads=threads, inputs=inputs, count=_count(output))
        name, texts = str(request.documents), not request.without_texts
        return write_index(documents, output, made, threads=threads, name=name, inputs=inputs, texts=texts)


def make_share(request: IndexRequest, output: Path, share: Share) -> list[str]:
    """Make one process's share of the files of `make_index`; returns a line for each part.

    With documents a share is blocks of encoders' parts, else of parts that are made of others. It takes no lock.

    Raises:
        InputError, UnavailableError: no part of an encoder is missing; a part that one process makes; as `make_index`.
    """
    request = possible(request, output) if request.documents else request
    _, settings, _, names = _missing(request, output)
    if request.documents:
        names = [name for name in names if getattr(request.chosen[name].params, "encoder", OWN) != OWN]
        if not names:
            known = f"{argument('shard_id', share[0])}: shares are of {', '.join(encoded_parts())}"
            raise InputError(f"{known}; none of them is left to make here")
    made = _makers(request, names, settings)
    if request.documents:
        count, own = encode_ahead(request.read(), made, request, work_of(output), share)
        return [f"{' and '.join(names)}: {count} blocks of documents made, {own - count} were there"]
    for maker in made:
        maker.start(work_of(output), request.threads)
    return [f"{maker.name}: {maker.write_share(output, share)}" for maker in made]


@phase("adding documents to the index")
def extend_index(output: Path, request: IndexRequest) -> Built:
    """Add documents to an index and all its parts, after the others; returns what it is then.

    Its bytes equal those of an index of all documents, but for Lucene's file names and the described sources. It
    appears whole; killed work resumes.

    Raises:
        InputError: no index, documents of another kind, a known docid (with its line), a changed encoder; as
            `write_index`.
        UnavailableError: an encoder that is not available, a Lucene part without Java.
    """
    with building(output):
        if not (described := describe(output)):
            raise InputError(f"{output}: no index to add to; make one with --documents")
        texts, inputs = (output / FOLDER).is_dir(), dict(described["inputs"])
        request = replace(request, parts=list(described["parts"]), fields=inputs.get("fields", TITLE_AND_TEXT))
        settings = stored_settings(output, described["parts"])
        own, first = getattr(settings.get("dense"), "encoder", OWN) == OWN, next(request.read(), None)
        if first is None:
            raise InputError(f"{request.documents}: no documents to add; expected at least one")
        if request.without_texts == texts or (first.vector is not None and not own):
            has = "texts and vectors of an encoder" if texts else "vectors alone"
            raise InputError(
                f"{output}: an index of {has}, unlike {request.documents}; give documents of the same kind"
            )
        computed = sorted({*_computed(described).values()})
        if computed and request.compute_dtype not in computed:
            were = f"{output}: its documents were computed in {' and '.join(computed)}"
            raise InputError(f"{were}; give {argument('compute_dtype', ' or '.join(computed))}")
        made = _makers(request, settings, settings, output)
        inputs["documents"] = fingerprint(inputs.get("documents"), documents_mark(request.documents))
        whole = itertools.chain(documents_of(output) if texts else documents_of_vectors(output), request.read())
        name = f"{described.get('documents', '')} + {request.documents}"
        return write_index(whole, output, made, threads=request.threads, name=name, inputs=inputs, texts=texts)


def _missing(request: IndexRequest, output: Path) -> tuple[dict[str, Any], dict[str, Any], list[str], list[str]]:
    """The inputs of a request, settings of all parts, the parts that `output` has already, and those that it lacks.

    Raises:
        InputError: an index of other documents or settings; no index to take parts from; a part without its origin.
    """
    inputs, names = request.inputs() if request.documents else {}, list(request.chosen)
    if (taken := request.taken) is not None:
        shown = argument("from_index", taken)
        if not {*encoded_parts()} & {*names} & {*describe(taken).get("parts", {})}:
            known = f"has none of {', '.join(encoded_parts())} that {argument('parts')} names"
            raise InputError(f"{shown}: {known}; give an index of the same documents")
        if differing := _differing(taken, names, inputs):
            raise InputError(f"{shown}: holds an index of {differing}; leave it out, and they are encoded")
        for name, dtype in _computed(describe(taken)).items():
            if name in names and request.compute_dtype not in (EXACT, dtype):
                raise InputError(f"{shown}: its {name} was computed in {dtype}; leave it out, and it is encoded")
    settings: dict[str, Any] = {}
    asked = {name: one.params for name, one in request.chosen.items()}
    if output.is_dir() and any(output.iterdir()) and not (request.documents and request.overwrite):
        if request.documents and (differing := _differing(output, names, inputs)):
            others = f"give {argument('overwrite')} to replace it, or another {argument('output')}"
            raise InputError(f"{output}: holds an index of {differing}; {others}")
        stored = [name for name in stored_parts(output) if part(name).stands(output, asked.get(name))]
        settings = stored_settings(output, stored) if describe(output) else dict.fromkeys(stored)
    there, settings = list(settings), settings | asked
    missing = [name for name in names if request.overwrite or name not in there]
    for name in missing:
        if (origins := part(name).origins(asked[name])) and not {*origins} & {*settings}:
            raise InputError(
                f"{output}: {name} is made of {' or '.join(origins)}, which this index does not have; "
                f"add {origins[0]} to {argument('parts')}"
            )
    return inputs, settings, there, missing


def _computed(described: Mapping[str, Any]) -> dict[str, str]:
    """The parts of encoders in a description → the types that they were computed in."""
    made_by = {name: described["parts"].get(name, {}).get("encoder") for name in encoded_parts()}
    return {name: one.get("computed", {}).get("dtype", EXACT) for name, one in made_by.items() if one}


def _count(index: Path) -> int:
    """The number of documents of an index; InputError: no index."""
    described = describe(index)
    return int(described["count"]) if described else len(open_vectors(index).docids)


def _makers(
    request: IndexRequest, names: Iterable[str], settings: Mapping[str, Any], taken: Path | None = None
) -> list[Part]:
    """The objects that make parts, those that are made of others last.

    settings: of all parts of the index; taken: an index of the same or the first documents.
    """
    reused = describe(taken)["parts"] if taken is not None else {}
    made = []
    for name in sorted(names, key=lambda name: bool(part(name).made_of)):
        made.append(one := part(name).make(settings[name], settings))
        one.backend, one.address, one.devices = request.backend, request.address, request.devices
        if taken is not None and name in reused:
            one.extend(taken)
            if request.taken is not None:  # nothing is left to encode
                one.devices = None
    return made


def _differing(index: Path, names: list[str], inputs: dict[str, Any]) -> str:
    """The common inputs of an index and a request that differ, for an error."""
    described = describe(index)
    before = described.get("inputs", {})
    common = ("documents", "fields", *(name for name in names if name in described.get("parts", {})))
    said = {"documents": f"documents ({described.get('documents', 'unknown')} as it was)"}
    return " and ".join(f"other {said.get(key, key)}" for key in common if before.get(key) != inputs.get(key))


def possible(request: IndexRequest, output: Path) -> IndexRequest:
    """The request with the documents' own vectors, and without the parts of `auto` that cannot be made here.

    Prints the parts that are left out. Raises as `IndexRequest.with_own_vectors` and `obstacles`.
    """
    automatic, request = request.parts == AUTO, request.with_own_vectors()
    if automatic and (lost := obstacles(request)):
        again = f"--documents {request.documents} --output {output} --parts {','.join(lost)}"
        say(f"left out: {said(lost)}; to add it later: python -m rnnreranker.index {again}")
        request = replace(request, parts=[one for name, one in request.forms.items() if name not in lost], settings={})
    return request


def obstacles(request: IndexRequest) -> dict[str, str]:
    """The parts of a request that cannot be made here → the reasons; loads models and starts Java.

    Raises:
        InputError: unknown settings of an encoder.
        UnavailableError, MissingDependencyError: an encoder that the request names, or all parts.
    """
    lost: dict[str, str] = {}
    for name, one in request.chosen.items():
        kind, there = part(name), {other: own.params for other, own in request.chosen.items() if other not in lost}
        if (origins := kind.origins(one.params)) and not {*origins} & {*there}:
            lost[name] = f"it is made from the part {' or '.join(origins)}"
            continue
        try:
            kind.make(one.params, there).check()
        except (UnavailableError, MissingDependencyError) as error:
            named = kind.encoder and one.params.encoder != vars(kind.Params)["encoder"]
            if named or len(lost) == len(request.chosen) - 1:  # nothing else is left
                raise
            lost[name] = str(error)
    return lost


def said(lost: dict[str, str]) -> str:
    return " and ".join(f"{part} ({reason})" for part, reason in lost.items())
