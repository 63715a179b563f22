"""What the compiled engine is made with: numba, its cache, and two machine instructions it does not offer."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic

SOURCES = (  # everything that ends up in the machine code
    *("compiled.py", "kernel.py", "neighbours.py", "selection.py"),
    *("graph_kernel.py", "graph_pairs.py", "graph_rows.py"),
)


def compiled(**options: Any) -> Callable[[Any], Any]:
    """numba.njit as every compiled part uses it: without the interpreter's lock, floats divided as numpy does."""
    return numba.njit(
        nogil=True, error_model="numpy", **{"no_cpython_wrapper": True, "no_cfunc_wrapper": True} | options
    )


def kept(function: Callable[..., None]) -> Any:
    """The function compiled, with its machine code kept on disk where there is a folder for it.

    numba takes NUMBA_CACHE_DIR, else the __pycache__ beside this file, else the user's cache folder; when none can be
    written it refuses to compile at all, which must not stop us.
    """
    try:
        return compiled(cache=True, no_cpython_wrapper=False)(function)
    except RuntimeError:
        return compiled(no_cpython_wrapper=False)(function)


def checksum() -> int:
    """A number that changes with any of the sources.

    numba looks for changes only in the file of the function it keeps, but files machine code under the values that the
    function takes from the function around it: this number is to be one of them.
    """
    folder = Path(__file__).parent
    return zlib.crc32(b"".join((folder / name).read_bytes() for name in SOURCES))


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


@intrinsic
def int_of(typingctx: Any, value: Any) -> Any:
    """The int32 that has the bits of a float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(numba.types.int32))

    return numba.types.int32(value), generate


@intrinsic
def sixteen(typingctx: Any, row: Any, start: Any, floor: Any) -> Any:
    """Which of row[start : start + 16], contiguous float32, are at least `floor`: a bit each, the first the lowest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lane, vector = ir.IntType(32), ir.VectorType(ir.FloatType(), 16)
        array = context.make_array(signature.args[0])(context, builder, args[0])
        block = builder.load(builder.bitcast(builder.gep(array.data, [args[1]]), vector.as_pointer()))
        block.align = 4
        empty = ir.Constant(vector, ir.Undefined)
        one = builder.insert_element(empty, args[2], lane(0))
        floors = builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(lane, 16), [0] * 16))
        bits = builder.bitcast(builder.fcmp_ordered(">=", block, floors), ir.IntType(16))
        return builder.zext(bits, ir.IntType(64))

    return numba.types.uint64(row, numba.types.int64, numba.types.float32), generate


@intrinsic
def raise_sixteen(typingctx: Any, maxima: Any, at: Any, row: Any, start: Any) -> Any:
    """Set maxima[at : at + 16] to the larger of themselves and row[start : start + 16]; contiguous float32 both."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.FloatType(), 16)

        def place(array: int, offset: int) -> Any:
            data = context.make_array(signature.args[array])(context, builder, args[array]).data
            return builder.bitcast(builder.gep(data, [args[offset]]), vector.as_pointer())

        held = builder.load(place(0, 1))
        held.align = 4
        block = builder.load(place(2, 3))
        block.align = 4
        stored = builder.store(builder.select(builder.fcmp_ordered(">", block, held), block, held), place(0, 1))
        stored.align = 4
        return context.get_dummy_value()

    return numba.types.void(maxima, numba.types.int64, row, numba.types.int64), generate
