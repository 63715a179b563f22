"""The gateway to ir_datasets: ids and short names, quiet logging, one-line errors."""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from rnnreranker.base.errors import InputError, RnnrerankerError, UnavailableError, nearest, require
from rnnreranker.base.private import known_names
from rnnreranker.data import reqa, tripclick
from rnnreranker.data.names import BUILT_IN_TOPICS, SHORT_NAMES


def load(name: str) -> Any:
    """The ir_datasets data set of an id (`beir/scifact/test`) or short name (`scifact`), without a download.

    Raises:
        InputError: an unknown name (with the nearest ones).
    """
    ir_datasets = _library(name)
    ir_datasets.log.easy().logger()  # makes its handler, whose level we then lower
    logging.getLogger("ir_datasets").setLevel(logging.ERROR)
    try:
        return ir_datasets.load(SHORT_NAMES.get(name, name))
    except KeyError:
        short = [*SHORT_NAMES, *BUILT_IN_TOPICS, *tripclick.NAMES, *reqa.NAMES]
        near = nearest(name, [*short, *known_names(ir_datasets)])
        near = near if near.startswith("did you mean") else nearest(name, short)
        hint = f"write ./{name} for the folder" if os.path.isdir(name) else f"{near}; see the ids of ir-datasets.com"
        raise InputError(f"{name}: neither a file nor a data set known here or to ir_datasets; {hint}") from None


def _library(name: str) -> Any:
    return require("ir_datasets", f"the data set {name}", "ir_datasets")


def items(name: str, what: str) -> Iterator[Any]:
    """The docs, queries, qrels or docpairs of a data set, streamed; errors as `load` and `reading`."""
    dataset = load(name)
    with reading(name, what):
        yield from getattr(dataset, f"{what}_iter")()


@contextlib.contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """Turns errors of ir_datasets in a block that reads `what` of the data set `name` into one line.

    Raises:
        UnavailableError: the data cannot be downloaded, or need an agreement and a local copy.
        InputError: the data set has no such part, or it is damaged.
    """
    home = os.environ.get("IR_DATASETS_HOME", "~/.ir_datasets")
    try:
        yield
    except RnnrerankerError:
        raise
    except AttributeError as error:
        raise InputError(f"{name}: this data set has no {what} ({error})") from None
    except FileNotFoundError as error:
        raise UnavailableError(
            f"{name}: the {what} need a local copy that is not there ({error.filename or error}); "
            "https://ir-datasets.com says how to get it"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, LookupError, TypeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{name}: the {what} in {home} are damaged ({said}); delete them there, get them again"
        ) from None
    except (OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "download" not in str(error):
            raise
        raise UnavailableError(
            f"{name}: the {what} are not in {home} and cannot be downloaded ({type(error).__name__}: no network?); "
            "set IR_DATASETS_HOME to a copy, or run where there is internet"
        ) from None


def text_of(document: Any, fields: Sequence[str], name: str) -> str:
    """The text of a document of ir_datasets: its default text with titles, else its field `text`.

    Raises:
        InputError: no field `text`.
    """
    if "title" in fields:
        return str(document.default_text())
    if not hasattr(document, "text"):
        raise InputError(f"{name}: no field text in {', '.join(document._fields)}; leave out --fields text")
    return str(document.text)
