"""An index of named documents in a folder: what can be made here, made, completed, or checked whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base.apart import check_apart
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError
from rnnreranker.base.files.checksums import AGAIN, DESCRIPTION, DOCIDS, TEXTS, check_whole, names_in
from rnnreranker.base.process.phases import phase
from rnnreranker.base.request import Share
from rnnreranker.data.fields import TITLE_AND_TEXT
from rnnreranker.index.ahead import encode_ahead
from rnnreranker.index.build import Built, add_parts, building, check_replaceable, work_of, write_index
from rnnreranker.index.request import IndexRequest
from rnnreranker.parts.base import Part, describe, part, parts, stored_settings
from rnnreranker.parts.vectors.part import OWN


def encoded_parts() -> list[str]:
    """The parts that encoders make, which one index may take from another."""
    return [name for name, one in parts().items() if one.encoder]


@phase("making the index")
def make_index(request: IndexRequest, output: Path) -> tuple[Built, list[str]]:
    """What stands in `output` afterwards, and the parts that were made; parts that are there already stay.

    Args:
        request: documents and parts.
        output: the folder; an interrupted build goes on.

    Raises:
        InputError: as `write_index`; an index of other inputs in the folder, without `overwrite`, documents in it, or
            an index to be taken from that has other inputs or none of the parts.
        UnavailableError: a BM25 part without Java 21 or newer, an encoder that cannot be had.
    """
    check_replaceable(output)
    read = {"documents": request.documents, "from_index": request.from_index}
    check_apart(read | {"output": output}, replaces=output)
    request = request.with_own_vectors()
    with building(output):  # or what is missing may be there when it is this process's turn
        return _make_missing(request, output)


def _make_missing(request: IndexRequest, output: Path) -> tuple[Built, list[str]]:
    inputs = request.inputs()
    if request.from_index is not None:
        _check_taken(request.from_index, request, inputs)
    there = [] if request.overwrite else _parts_there(output, request, inputs)
    missing = [name for name in request.names if name not in there]
    of_texts = [name for name in missing if not part(name).made_of]
    stored = stored_settings(output, there) if there else {}
    beside = stored | {name: one.params for name, one in request.chosen.items()}
    made_of = makers([name for name in missing if part(name).made_of], request, beside, output)
    for maker in made_of:
        maker.check()  # before anything is encoded
    if of_texts:
        built = _make(request, output, of_texts, inputs, bool(there))
    else:
        built = Built(output, describe(output)["count"], 0)
    return (add_parts(output, made_of, threads=request.threads) if made_of else built), missing


def makers(names: Sequence[str], request: IndexRequest, beside: Mapping[str, Any], output: Path) -> list[Part]:
    """What makes parts of a request that are made of others, those first that others of them are made of.

    Args:
        beside: the settings of the parts that the index has or gets.

    Raises:
        InputError: none of the parts that one of them is made of is there; as `Part.make`.
    """
    names = sorted(names, key=lambda name: part(name).depth())
    for name in names:
        possible = part(name).origins(request.chosen[name].params)
        if not {*possible} & {*beside}:
            raise InputError(
                f"{output}: {name} is made of {' or '.join(possible)}, which this index does not have; "
                f"add {possible[0]} to {argument('parts')}"
            )
    return [_made(name, request, beside) for name in names]


def _made(name: str, request: IndexRequest, beside: Mapping[str, Any]) -> Part:
    """What makes a part of a request."""
    made = part(name).make(request.chosen[name].params, beside)
    made.backend, made.address, made.devices = request.backend, request.address, request.devices
    return made


def _make(request: IndexRequest, output: Path, missing: list[str], inputs: dict[str, Any], exists: bool) -> Built:
    """An index that has these parts too, which are made while the documents stream by."""
    documents = request.read()  # an unknown name fails here, before a model is loaded
    made = _of_texts(request, missing)
    if request.backend != "threads" and request.from_index is None:
        encode_ahead(request.read(), made, request, work_of(output))
    if exists:
        inputs = {key: value for key, value in inputs.items() if value is not None}
        return add_parts(output, made, documents, threads=request.threads, inputs=inputs)
    name, texts = str(request.documents), not request.without_texts
    return write_index(documents, output, made, threads=request.threads, name=name, inputs=inputs, texts=texts)


def encode_share(request: IndexRequest, output: Path, share: Share) -> tuple[list[str], int, int]:
    """One process's share of what encoders make of a request, in files that `make_index` takes in place of encoding.

    Returns:
        The parts, how many blocks of documents were made of them, and how many the share has.

    Raises:
        InputError: none of its parts is made by an encoder, or all are there; as `make_index`.
        UnavailableError: as there.
    """
    request = request.with_own_vectors()
    there = _parts_there(output, request, request.inputs())
    encoded = [name for name in request.names if getattr(request.chosen[name].params, "encoder", OWN) != OWN]
    names = [name for name in encoded if name not in there]
    if not names:
        said = ", ".join(encoded_parts())
        raise InputError(f"{argument('shard_id', share[0])}: shares are of {said}; none of them is left to make here")
    documents, made = request.read(), _of_texts(request, names)
    return names, *encode_ahead(documents, made, request, work_of(output), share)


def _of_texts(request: IndexRequest, names: Sequence[str]) -> list[Part]:
    """What makes parts of texts; of those that the index that is taken from has, nothing is encoded."""
    made = [_made(name, request, {}) for name in names]
    if request.from_index is not None:
        for one in made:
            if one.encoder and one.name in describe(request.from_index)["parts"]:
                one.extend(request.from_index)
    return made


def _parts_there(output: Path, request: IndexRequest, inputs: dict[str, Any]) -> list[str]:
    """The parts that `output` has; none where there is no index.

    Raises:
        InputError: an index of other documents or, where both have such a part, of other vectors or impacts.
    """
    if not output.is_dir() or not any(output.iterdir()):
        return []
    if differing := _differing(output, request, inputs):
        raise InputError(
            f"{output}: holds an index of {differing}; give {argument('overwrite')} to replace it, or another "
            f"{argument('output')}"
        )
    asked = {name: one.params for name, one in request.chosen.items()}
    known = [name for name in describe(output).get("parts", {}) if name in parts()]
    return [name for name in known if part(name).stands(output, asked.get(name))]


def _check_taken(index: Path, request: IndexRequest, inputs: dict[str, Any]) -> None:
    """Look that an index has what can be taken of it.

    Raises:
        InputError: no index, one without such a part of the request, one of other inputs.
    """
    encoded = encoded_parts()
    if not {*encoded} & {*request.names} & {*describe(index).get("parts", {})}:
        raise InputError(
            f"{argument('from_index', index)}: has none of {', '.join(encoded)} that {argument('parts')} names; give "
            "an index made by python -m rnnreranker.index, of the same documents"
        )
    if differing := _differing(index, request, inputs):
        raise InputError(
            f"{argument('from_index', index)}: holds an index of {differing}; leave it out, and they are encoded"
        )


def _differing(index: Path, request: IndexRequest, inputs: dict[str, Any]) -> str:
    """Which inputs of an index are not those of a request, where both have such a part, in the words of an error."""
    described = describe(index)
    there, before = described.get("parts", {}), described.get("inputs", {})
    named = described.get("documents", "unknown")
    changed = "documents that are no longer those of" if named == str(request.documents) else "other documents:"
    said = {
        "documents": f"{changed} {named}",
        "fields": f"other fields of documents ({','.join(before.get('fields', TITLE_AND_TEXT))})",
    }
    shared = {
        name: one.summary(there[name]) for name, one in parts().items() if name in request.names and name in there
    }
    return " and ".join(text for key, text in (said | shared).items() if before.get(key) != inputs.get(key))


def obstacles(request: IndexRequest) -> dict[str, str]:
    """What stands in the way of those parts of a request that cannot be made here.

    Models are loaded and Java is started, to know.

    Raises:
        InputError: settings that an encoder does not have.
        UnavailableError, MissingDependencyError: an encoder that the request names, or no part that can be made.
    """
    lost: dict[str, str] = {}
    for name, one in request.chosen.items():
        kind, there = part(name), {other: request.chosen[other].params for other in request.names if other not in lost}
        if (origins := kind.origins(one.params) if kind.made_of else ()) and not {*origins} & {*there}:
            lost[name] = f"it is made from the part {' or '.join(origins)}"
            continue
        try:
            kind.make(one.params, there).check()
        except (UnavailableError, MissingDependencyError) as error:
            if kind.encoder and one.params.encoder != vars(kind.Params())["encoder"]:
                raise  # what was named is not left out
            lost[name] = str(error)
    if len(lost) == len(request.names):
        raise UnavailableError(f"no part of an index can be made here: {said(lost)}")
    return lost


def said(lost: dict[str, str]) -> str:
    """Parts that were left out, each with its reason.

    >>> said({"bm25": "needs Java 21", "impact": "needs weights"})
    'bm25 (needs Java 21) and impact (needs weights)'
    """
    return " and ".join(f"{part} ({reason})" for part, reason in lost.items())


SHOWN = 3  # damaged files that an error names


@phase("checking the index")
def check_index(index: Path) -> str:
    """What there is to say of an index whose files are all those that were written.

    Args:
        index: a folder made by `python -m rnnreranker.index`.

    Raises:
        InputError: files that are gone or others, a folder that is no such index.
    """
    if not index.is_dir():
        raise InputError(f"{index}: no such folder; expected an index made by python -m rnnreranker.index")
    described = describe(index)
    if not described:
        raise InputError(
            f"{index}: no {DESCRIPTION} in it, so nothing says what its files should be; expected an index made by "
            "python -m rnnreranker.index"
        )
    groups = described["files"]
    if without := [name for name in (DOCIDS, TEXTS, *described["parts"]) if name not in groups]:
        raise InputError(f"{index / DESCRIPTION}: no checksums of {', '.join(without)}; {AGAIN}")
    if wrong := check_whole(index, groups):
        more = f"; and {len(wrong) - SHOWN} more files" if len(wrong) > SHOWN else ""
        raise InputError(f"{'; '.join(wrong[:SHOWN])}{more}; {AGAIN}")
    names = {name for group in groups.values() for name in group}
    size = sum(of_file["bytes"] for group in groups.values() for of_file in group.values())
    said = f"{index}: {len(names)} files ({size / 1e6:.1f} MB) are those that were written"
    if others := sorted(names_in(index) - names):
        said += f"; not described: {', '.join(others[:SHOWN])}{', …' if len(others) > SHOWN else ''}"
    return said
