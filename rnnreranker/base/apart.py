"""No command writes over its inputs: all paths of a command are compared before any work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rnnreranker.base.arguments import argument, flag
from rnnreranker.base.errors import InputError
from rnnreranker.base.files.atomic import file_identity, read_by_command
from rnnreranker.base.method import KINDS, names
from rnnreranker.base.written_form import Written, read_joined, read_listed

# Arguments of commands and functions by name: those that are written; those that are paths, or names of other things;
# methods in their written form, whose settings may be paths. tests/test_overwriting.py fails where one is in no set.
_ARGUMENTS = (
    """output json explain_output tsv qrels_output listwise audit_output plots record storage work docs_folder""",
    """index bm25_index from_index append documents topics test_topics validation_topics qrels test_qrels
    validation_qrels truth run runs test_run validation_run encoded_queries encoder preset pairs labels negatives
    validation_labels neutrality term_scorer collections space read second files names""",
    """retriever retrieve fuse prf expand rerank aggregate method model loss arms first_stages similarity beside filter
    parts scorer impact_encoder token_encoder""",
)
WRITTEN, READ, FORMS = (frozenset(names.split()) for names in _ARGUMENTS)


def check_apart(
    values: Mapping[str, Any], flags: Collection[str] = (), *, replaces: str | os.PathLike[str] | None = None
) -> None:
    """Refuse outputs that would replace an input or another output, also through links.

    Args:
        values: arguments by name: paths, lists of paths, written forms; others are ignored.
        flags: of a command, for messages; writers then refuse its inputs until the next command.
        replaces: a folder that is written as a whole.

    Raises:
        InputError: an output that is an input or another output, is inside an input folder, or replaces an input.
    """

    def shown(name: str) -> str:
        return (flag(name) if flag(name) in flags else name) if flags else argument(name)

    inputs = [
        (f"{shown(name)} {path}", path)
        for name, value in values.items()
        if name in READ or name in FORMS
        for path in _paths_in(name, value)
    ]
    outputs = [
        (shown(name), Path(value).expanduser())
        for name, value in values.items()
        if name in WRITTEN and isinstance(value, str | Path) and os.fspath(value) not in ("", "-")
    ]
    if flags:
        read_by_command.clear()
        read_by_command.update({identity: given for given, path in inputs if (identity := file_identity(path))})
    for position, (name, output) in enumerate(outputs):
        for other, path in outputs[:position]:
            if _same(path, output) and (path.is_file() or not path.exists()):
                raise InputError(f"{name} {output}: {other} writes this path too; give another name")
        for given, path in inputs:
            if _same(path, output):
                raise InputError(f"{name} {output}: the command reads it ({given}); give another name")
            if _holds(path, output):
                raise InputError(
                    f"{name} {output}: is inside the folder that the command reads ({given}); give a path outside it"
                )
    for given, path in inputs:
        if replaces is not None and _holds(Path(replaces).expanduser(), path):
            raise InputError(f"{replaces}: is written as a whole, but {given} is inside it; give another folder")


def _paths_in(name: str, value: Any) -> Iterator[Path]:
    """The existing files and folders that an argument reads."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _paths_in(name, one)
    elif isinstance(value, str | Path | Written):
        for path in [Path(text).expanduser() for text in _texts_in(name, str(value)) if text]:
            if os.path.isfile(path) or os.path.isdir(path):  # not of Path, which raises where a text is too long
                yield path
                if path.suffix == ".npy" and (beside := path.with_suffix(".ids")).is_file():  # of a matrix of vectors
                    yield beside


def _texts_in(name: str, text: str) -> Iterable[str]:
    """The possible paths in the text of an argument."""
    if name in FORMS:
        return [value for value in _values(text) if not _is_name(value)]
    if name in ("index", "encoder") and _is_name(text):
        return ()
    return [text, text.rpartition(":")[0], *text.split(":without:"), *_values(text)]  # FOLDER:SPLIT is a folder's split


def _values(text: str) -> Iterator[str]:
    for reader in (read_joined, read_listed):
        with contextlib.suppress(InputError):  # the reader of the form reports what is wrong
            for form in reader(text):
                for value in map(str, [form.preset, *form.params.values()]):
                    yield value
                    yield from _values(value) if "=" in value else ()


def _is_name(text: str) -> bool:
    """Whether an existing file has the name of a method or of the built-in collection, which take precedence."""
    return os.path.exists(text) and (text == "pydoc" or any(text in names(kind) for kind in KINDS))


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead, or would lead, to the same file or folder; ignores devices and pipes."""
    if (identity := file_identity(one)) is not None:
        return (one.is_file() or one.is_dir()) and identity == file_identity(other)
    return os.path.realpath(one) == os.path.realpath(other)


def _holds(folder: Path, path: Path) -> bool:
    return folder.is_dir() and file_identity(folder) in map(file_identity, Path(os.path.realpath(path)).parents)
