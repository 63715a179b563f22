"""What the compiled engine is made with: numba, its cache, and two machine instructions it does not offer."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.extending import intrinsic

SOURCES = ("compiled.py", "kernel.py", "neighbours.py")  # everything that ends up in the machine code


def compiled(**options: Any) -> Callable[[Any], Any]:
    """numba.njit as every compiled part uses it: without the interpreter's lock, floats divided as numpy does."""
    return numba.njit(nogil=True, error_model="numpy", **options)


def kept(function: Callable[..., None]) -> Any:
    """The compiled function as one that is called from Python, its machine code kept on disk where there is a folder.

    numba takes NUMBA_CACHE_DIR, else the __pycache__ beside this file, else the user's cache folder; when none can be
    written it refuses to compile at all, which must not stop us. It looks for changes in one file only: the checksum of
    all sources is a constant of the function, and so part of what the machine code is filed under.
    """
    folder = Path(__file__).parent
    stamp = zlib.crc32(b"".join((folder / name).read_bytes() for name in SOURCES))

    def call(*arguments):  # type: ignore[no-untyped-def]
        if stamp >= 0:  # always; naming the checksum is what counts
            function(*arguments)

    try:
        return compiled(cache=True)(call)
    except RuntimeError:
        return compiled()(call)


@intrinsic
def ones(typingctx: Any, word: Any) -> Any:
    """The number of bits set in a word."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), generate


@intrinsic
def float_of(typingctx: Any, word: Any) -> Any:
    """The float32 that has the bits of an int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(numba.types.float32))

    return numba.types.float32(word), generate
