"""The compiled engine of MaxSim: products of query and document tokens of which only the maxima leave the registers.

A block of document tokens is multiplied with a panel of query tokens, whose numbers of one dimension stand side by
side. Every product is summed over the dimensions in their order, so that it depends on nothing but its two tokens.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from rnnreranker.rnn.engines.compiled import checksum, compiled, kept

LANES = 16


def _host() -> tuple[int, int, bool]:
    """What the registers of this machine hold: tokens of a block, vectors of a panel; whether it widens float16."""
    features = llvmlite.binding.get_host_cpu_features()
    arm = llvmlite.binding.get_default_triple().startswith(("aarch64", "arm64"))
    return (12, 2, True) if features.get("avx512f") else (6, 1, bool(features.get("f16c")) or arm)


ROWS, VECTORS, WIDENS = _host()
FEW = 4  # tokens of a block at the end of a document
WIDTH = LANES * VECTORS  # query tokens of a panel


def _products(rows: int) -> Any:
    """The intrinsic for blocks of so many document tokens."""

    @intrinsic
    def products(typingctx: Any, tokens: Any, start: Any, panel: Any, first: Any, d: Any, maxima: Any, at: Any) -> Any:
        """Raise maxima[at : at + WIDTH] to the products of document tokens with those of a panel, float32.

        tokens: row r of the block is tokens[start + r * d : start + (r + 1) * d]; panel: dimension k of its query
        tokens is panel[first + k * WIDTH : first + (k + 1) * WIDTH]. What stands WIDTH behind a maximum becomes NaN
        where a product is not finite.
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            lane, vector = ir.IntType(32), ir.VectorType(ir.FloatType(), LANES)
            undefined, zero = ir.Constant(vector, ir.Undefined), ir.Constant(vector, [0.0] * LANES)
            spread = ir.Constant(ir.VectorType(lane, LANES), [0] * LANES)
            held, wanted, out = (
                context.make_array(signature.args[argument])(context, builder, args[argument]).data
                for argument in (0, 2, 5)
            )
            base, columns = builder.gep(held, [args[1]]), builder.gep(wanted, [args[3]])
            lines = [builder.gep(base, [builder.mul(args[4], ir.IntType(64)(row))]) for row in range(rows)]
            sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(VECTORS)] for _ in range(rows)]

            def load(pointer: Any, index: Any) -> Any:
                vector_read = builder.load(builder.bitcast(builder.gep(pointer, [index]), vector.as_pointer()))
                vector_read.align = 4
                return vector_read

            with cgutils.for_range(builder, args[4]) as loop:
                here = builder.mul(loop.index, ir.IntType(64)(WIDTH))
                own = [load(columns, builder.add(here, ir.IntType(64)(LANES * v))) for v in range(VECTORS)]
                for row in range(rows):
                    one = builder.insert_element(
                        undefined, builder.load(builder.gep(lines[row], [loop.index])), lane(0)
                    )
                    value = builder.shuffle_vector(one, undefined, spread)
                    for v in range(VECTORS):
                        product = builder.fmul(value, own[v], flags=("contract",))
                        builder.store(
                            builder.fadd(builder.load(sums[row][v]), product, flags=("contract",)), sums[row][v]
                        )
            for v in range(VECTORS):
                index = builder.add(args[6], ir.IntType(64)(LANES * v))
                behind = builder.add(index, ir.IntType(64)(WIDTH))
                highest, wrong = load(out, index), load(out, behind)
                for row in range(rows):
                    total = builder.load(sums[row][v])
                    highest = builder.select(builder.fcmp_ordered(">", total, highest), total, highest)
                    wrong = builder.fadd(wrong, builder.fmul(total, zero))
                for value, where in ((highest, index), (wrong, behind)):
                    builder.store(value, builder.bitcast(builder.gep(out, [where]), vector.as_pointer())).align = 4
            return context.get_dummy_value()

        number = numba.types.int64
        return numba.types.void(tokens, number, panel, number, number, maxima, number), generate

    return products


_many, _few, _one = _products(ROWS), _products(FEW), _products(1)


@intrinsic
def _widened(typingctx: Any, halves: Any, start: Any, floats: Any, count: Any) -> Any:
    """Set floats[:count] to halves[start : start + count], the bits of float16 as float32; of whole sixteens."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, target = (context.make_array(signature.args[at])(context, builder, args[at]).data for at in (0, 2))
        source = builder.gep(source, [args[1]])
        with cgutils.for_range(builder, builder.udiv(args[3], ir.IntType(64)(LANES))) as loop:
            index = builder.mul(loop.index, ir.IntType(64)(LANES))
            half = ir.VectorType(ir.HalfType(), LANES).as_pointer()
            values = builder.load(builder.bitcast(builder.gep(source, [index]), half))
            values.align = 2
            wide = ir.VectorType(ir.FloatType(), LANES)
            where = builder.bitcast(builder.gep(target, [index]), wide.as_pointer())
            builder.store(builder.fpext(values, wide), where).align = 4
        return context.get_dummy_value()

    return numba.types.void(halves, numba.types.int64, floats, numba.types.int64), generate


def score(
    queries: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    tokens: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill `out` for some documents; the contract is `late_interaction.Scorer`."""
    count, d = queries.shape
    panels = np.zeros((-(-count // WIDTH), WIDTH, d), dtype=np.float32)
    panels.reshape(-1, d)[:count] = queries
    panels = panels.transpose(0, 2, 1).reshape(-1)
    halves, floats = np.empty(0, dtype=np.uint16), tokens
    if tokens.dtype == np.float16 and WIDENS and d % LANES == 0:
        halves, floats = tokens.view(np.uint16), np.empty((0, d), dtype=np.float32)
    elif tokens.dtype == np.float16:
        own = [tokens[first:last].astype(np.float32) for first, last in zip(starts, ends, strict=True)]
        floats = np.concatenate([np.empty((0, d), dtype=np.float32), *own])
        ends = np.cumsum(ends - starts)
        starts = np.append(0, ends)[:-1]
    _score(_read_only(floats), _read_only(halves), d, starts, ends, panels, offsets, weights, out)


def _read_only(array: np.ndarray) -> np.ndarray:
    """The array, flat and as a mapped one is: numba compiles once for each kind of array that it is handed."""
    view = array.reshape(-1).view(np.ndarray)
    view.flags.writeable = False
    return view


@compiled()
def _block(tokens, start, rows, panels, d, maxima):  # type: ignore[no-untyped-def]
    for p in range(len(maxima) // (2 * WIDTH)):
        first, at = p * d * WIDTH, p * 2 * WIDTH
        if rows == ROWS:
            _many(tokens, start, panels, first, d, maxima, at)
        elif rows == FEW:
            _few(tokens, start, panels, first, d, maxima, at)
        else:
            _one(tokens, start, panels, first, d, maxima, at)


def _filed_under(stamp: int) -> Any:
    """The compiled entry; numba files its machine code under the stamp, see `checksum`."""

    def score_documents(floats, halves, d, starts, ends, panels, offsets, weights, out):  # type: ignore[no-untyped-def]
        maxima = np.empty(len(panels) // d * 2 if stamp >= 0 else 0, dtype=np.float32)
        widened = np.empty(ROWS * d if len(halves) else 0, dtype=np.float32)
        for document in range(len(starts)):
            first, end = starts[document], ends[document]
            for p in range(0, len(maxima), 2 * WIDTH):
                maxima[p : p + WIDTH] = -np.inf
                maxima[p + WIDTH : p + 2 * WIDTH] = 0.0
            row = first
            while row < end:
                rows = FEW if end - first >= FEW else 1
                if end - first >= ROWS and end - row > ROWS - FEW:
                    rows = ROWS
                row = min(row, end - rows)  # a maximum may see a token twice
                if len(halves):
                    _widened(halves, row * d, widened, rows * d)
                    _block(widened, 0, rows, panels, d, maxima)
                else:
                    _block(floats, row * d, rows, panels, d, maxima)
                row += rows
            for query in range(len(out)):
                total = 0.0
                for token in range(offsets[query], offsets[query + 1] if end > first else offsets[query]):
                    at = token // WIDTH * 2 * WIDTH + token % WIDTH
                    total += weights[token] * np.float64(maxima[at]) + np.float64(maxima[at + WIDTH])
                out[query, document] = total

    return kept(score_documents)


_score = _filed_under(checksum())
