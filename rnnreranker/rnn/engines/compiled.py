"""What the compiled engines are made with: numba, its cache, and machine instructions that it does not offer."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

SOURCES = (  # everything that ends up in the machine code
    *(
        f"engines/{name}.py"
        for name in ("compiled", "extension", "jaccard", "kernel", "neighbours", "selection", "smoothing")
    ),
    *(f"graph/{name}.py" for name in ("kernel", "pairs", "rows")),
    "late/kernel.py",
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
    folder = Path(__file__).parents[1]
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

        def address(array: int, offset: int) -> Any:
            data = context.make_array(signature.args[array])(context, builder, args[array]).data
            return builder.bitcast(builder.gep(data, [args[offset]]), vector.as_pointer())

        held = builder.load(address(0, 1))
        held.align = 4
        block = builder.load(address(2, 3))
        block.align = 4
        stored = builder.store(builder.select(builder.fcmp_ordered(">", block, held), block, held), address(0, 1))
        stored.align = 4
        return context.get_dummy_value()

    return numba.types.void(maxima, numba.types.int64, row, numba.types.int64), generate


def _standing(width: int) -> Any:
    """The intrinsic `standing` of so many values."""

    @intrinsic
    def standing(typingctx: Any, values: Any, count: Any, standings: Any) -> Any:
        """Set standings[j] to how many of values[:count] values[j] goes before: larger, or equal and first.

        Both contiguous float32. All pairs are compared, sixteen at a time and without a branch. Nothing is read behind
        those counted; standings behind them are 0.
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number, vector = ir.IntType(32), ir.VectorType(ir.FloatType(), 16)
            data, out = (context.make_array(signature.args[at])(context, builder, args[at]).data for at in (0, 2))

            def block_of(pointer: Any, block: int) -> Any:
                return builder.bitcast(builder.gep(pointer, [ir.IntType(64)(16 * block)]), vector.as_pointer())

            def spread(value: Any) -> Any:
                empty = ir.Constant(ir.VectorType(value.type, 16), ir.Undefined)
                same = ir.Constant(ir.VectorType(number, 16), [0] * 16)
                return builder.shuffle_vector(builder.insert_element(empty, value, number(0)), empty, same)

            lanes = ir.Constant(ir.VectorType(number, 16), list(range(16)))
            total = spread(builder.trunc(args[1], number))
            lowest, inside = ir.Constant(vector, [float("-inf")] * 16), ir.VectorType(ir.IntType(1), 16)
            kind = ir.FunctionType(vector, [vector.as_pointer(), number, inside, vector])
            load = cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.load.v16f32.p0v16f32")
            own = []
            for block in range(width // 16):
                lane_numbers = builder.add(lanes, ir.Constant(lanes.type, [16 * block] * 16))
                real = builder.icmp_signed("<", lane_numbers, total)
                own.append(builder.call(load, [block_of(data, block), number(4), real, lowest]))
            counts = [cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * 16)) for _ in own]
            for against in range(width // 16):  # loops: unrolled, all comparisons would be held at once
                first, rest = (
                    builder.gep(data, [args[1].type(16 * against)]),
                    builder.sub(args[1], args[1].type(16 * against)),
                )
                steps = builder.select(builder.icmp_signed("<", rest, rest.type(16)), rest, rest.type(16))
                with cgutils.for_range(builder, steps) as loop:
                    other = spread(builder.load(builder.gep(first, [loop.index])))
                    for block, held in enumerate(own):
                        ahead = builder.fcmp_ordered(">=" if block < against else ">", held, other)
                        if block == against:
                            lower = builder.sub(builder.shl(number(1), builder.trunc(loop.index, number)), number(1))
                            before = builder.bitcast(builder.trunc(lower, ir.IntType(16)), inside)
                            equal = builder.fcmp_ordered("==", held, other)
                            ahead = builder.or_(ahead, builder.and_(before, equal))
                        count = builder.load(counts[block])
                        more = builder.fadd(count, ir.Constant(vector, [1.0] * 16))
                        builder.store(builder.select(ahead, more, count), counts[block])
            for block, count in enumerate(counts):
                builder.store(builder.load(count), block_of(out, block)).align = 4
            return context.get_dummy_value()

        return numba.types.void(values, numba.types.int64, standings), generate

    return standing


standing_of_32, standing_of_64 = _standing(32), _standing(64)


@intrinsic
def rank_sixteen(typingctx: Any, values: Any, first: Any, count: Any, block: Any, ranks: Any) -> Any:
    """Set ranks[block : block + 16], int32, to the ranks of those of values[first : first + count], from the highest.

    Equal ones rank as they stand. There is room for sixteen values and ranks more than are counted.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, lane = ir.VectorType(ir.FloatType(), 16), ir.IntType(32)
        lanes, empty = ir.VectorType(lane, 16), ir.Constant(vector, ir.Undefined)
        held, out = (context.make_array(signature.args[at])(context, builder, args[at]).data for at in (0, 4))
        start = builder.gep(held, [args[1]])
        own = builder.load(builder.bitcast(builder.gep(start, [args[3]]), vector.as_pointer()))
        own.align = 4
        counted = cgutils.alloca_once_value(builder, ir.Constant(lanes, [0] * 16))
        spread = ir.Constant(lanes, [0] * 16)
        lane_numbers = builder.add(
            ir.Constant(lanes, list(range(16))),
            builder.shuffle_vector(
                builder.insert_element(ir.Constant(lanes, ir.Undefined), builder.trunc(args[3], lane), lane(0)),
                ir.Constant(lanes, ir.Undefined),
                spread,
            ),
        )
        with cgutils.for_range(builder, args[2]) as loop:
            one = builder.insert_element(empty, builder.load(builder.gep(start, [loop.index])), lane(0))
            other = builder.shuffle_vector(one, empty, spread)
            number = builder.insert_element(ir.Constant(lanes, ir.Undefined), builder.trunc(loop.index, lane), lane(0))
            before = builder.icmp_signed(
                "<", builder.shuffle_vector(number, ir.Constant(lanes, ir.Undefined), spread), lane_numbers
            )
            above = builder.fcmp_ordered(">", other, own)
            equal = builder.and_(builder.fcmp_ordered("==", other, own), before)
            ahead = builder.zext(builder.or_(above, equal), lanes)
            builder.store(builder.add(builder.load(counted), ahead), counted)
        target = builder.bitcast(builder.gep(out, [args[3]]), lanes.as_pointer())
        builder.store(builder.load(counted), target).align = 4
        return context.get_dummy_value()

    return numba.types.void(values, numba.types.int64, numba.types.int64, numba.types.int64, ranks), generate


@intrinsic
def sum_of_minima(typingctx: Any, one: Any, other: Any, start: Any, blocks: Any) -> Any:
    """The sum of the smaller of one[j] and other[start + j], contiguous float64, for j in so many blocks of eight.

    Eight sums, of every eighth j, are added up in halves, whatever the machine.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.DoubleType(), 8)
        first, second = (context.make_array(signature.args[at])(context, builder, args[at]).data for at in (0, 1))
        first = builder.bitcast(first, vector.as_pointer())
        second = builder.bitcast(builder.gep(second, [args[2]]), vector.as_pointer())
        sums = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * 8))
        with cgutils.for_range(builder, args[3]) as loop:
            a, b = (builder.load(builder.gep(data, [loop.index])) for data in (first, second))
            a.align = b.align = 8
            smaller = builder.select(builder.fcmp_ordered("<", a, b), a, b)
            builder.store(builder.fadd(builder.load(sums), smaller), sums)
        total, width = builder.load(sums), 8
        while width > 1:
            width //= 2
            low, high = (
                builder.shuffle_vector(
                    total, total, ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(at, at + width)))
                )
                for at in (0, width)
            )
            total = builder.fadd(low, high)
        return builder.extract_element(total, ir.IntType(32)(0))

    return numba.types.float64(one, other, numba.types.int64, numba.types.int64), generate


@intrinsic
def fetch_ahead(typingctx: Any, matrix: Any, row: Any) -> Any:
    """Have the memory bring matrix[row], whose rows are contiguous, while something else is computed."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        byte, flag = ir.IntType(8), ir.IntType(32)
        address = builder.gep(builder.bitcast(array.data, byte.as_pointer()), [builder.mul(stride, args[1])])
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), flag, flag, flag])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(fetch, [address, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return numba.types.void(matrix, numba.types.int64), generate
