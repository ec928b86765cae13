"""Triton kernels for the passes over a plan. Importing this needs the package `triton`.

Columns never depend on each other, so a program keeps a block of columns and walks through several levels of the
circuit by itself; it waits only for its own threads. Wide steps are split among several programs, one step per launch.
A program works on tiles of sums and columns [SUMS, COLUMNS]; neighbouring threads have neighbouring columns. Sums look
up what their parents hand down, so that no kernel needs atomic operations.

Values are in log space and impossible ones are -inf; the kernels never subtract two infinities.
"""

from __future__ import annotations

import triton
import triton.language as tl

FIELDS = tl.constexpr(7)
"""Numbers per step in the table: first row, sums, first edge, fan-in, most factors, most parents, choice."""


@triton.jit
def upward(
    values,
    weights,
    table,
    factor_start,
    factors,
    first,
    last,
    columns,
    num_fixed,
    WEIGHTED: tl.constexpr,
    MAXIMUM: tl.constexpr,
    SUMS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Fill in the values [rows, columns] of the sums of some steps, lowest first."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    for step in range(first, last):
        row, sums, edge, fan_in, most, _, choice = described(table, step)
        for tile in range(tl.program_id(1), tl.cdiv(sums, SUMS), tl.num_programs(1)):
            member, live, inside = members(tile, sums, column, columns, SUMS)
            best = tl.full([SUMS, COLUMNS], float("-inf"), values.dtype.element_ty)
            total = tl.zeros([SUMS, COLUMNS], values.dtype.element_ty)
            for k in range(fan_in):
                value = edge_values(
                    values, weights, factor_start, factors, edge + member * fan_in + k, live, column, inside,
                    columns, num_fixed, most, WEIGHTED, SUMS, COLUMNS,
                )  # fmt: skip
                larger = tl.maximum(best, value)
                if not MAXIMUM:
                    shift = tl.where(larger == float("-inf"), 0.0, larger)
                    total = total * tl.exp(best - shift) + tl.exp(value - shift)
                best = larger
            if not MAXIMUM:
                best = tl.where(choice > 0, best, best + tl.log(tl.where(total == 0.0, 1.0, total)))
            tl.store(values + offsets(row + member, column, columns), best, mask=inside)
        tl.debug_barrier()


@triton.jit
def downward(
    values,
    weights,
    flows,
    literals,
    table,
    factor_start,
    factors,
    parent_start,
    parents,
    first,
    last,
    columns,
    num_fixed,
    root,
    WEIGHTED: tl.constexpr,
    MAXIMUM: tl.constexpr,
    SUMS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Fill in the flows [edges, columns] of some steps, highest first; the lowest step stands for the literals.

    The share of an edge is its probability given its sum, or, with MAXIMUM, one for the first edge that is largest.
    """
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    top = tl.load(values + tl.full([COLUMNS], root, tl.int64) * columns + column, mask=column < columns, other=0.0)
    one = tl.full([COLUMNS], 1.0, values.dtype.element_ty)
    handed_out = one if MAXIMUM else tl.where(top > float("-inf"), one, 0.0)
    for back in range(first, last):
        step = last - 1 - back + first
        row, sums, edge, fan_in, most, most_parents, _ = described(table, step)
        for tile in range(tl.program_id(1), tl.cdiv(sums, SUMS), tl.num_programs(1)):
            member, live, inside = members(tile, sums, column, columns, SUMS)
            arriving = gathered(
                flows, parent_start, parents, row + member, live, column, inside, columns, most_parents, SUMS, COLUMNS
            )
            arriving = tl.where((row + member == root)[:, None], handed_out[None, :], arriving)
            if fan_in == 0:
                tl.store(literals + offsets(row + member, column, columns), arriving, mask=inside)
            own = tl.load(values + offsets(row + member, column, columns), mask=inside, other=0.0)
            open_ = tl.full([SUMS, COLUMNS], 1.0, values.dtype.element_ty)
            for k in range(fan_in):
                number = edge + member * fan_in + k
                value = edge_values(
                    values, weights, factor_start, factors, number, live, column, inside,
                    columns, num_fixed, most, WEIGHTED, SUMS, COLUMNS,
                )  # fmt: skip
                if MAXIMUM:
                    share = tl.where(value == own, open_, 0.0)
                    open_ -= share
                else:
                    share = share_of(value, own)
                tl.store(flows + offsets(number, column, columns), share * arriving, mask=inside)
        tl.debug_barrier()


@triton.jit
def alive(
    values,
    flags,
    table,
    factor_start,
    factors,
    first,
    last,
    columns,
    num_fixed,
    SUMS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """One for each weighted edge that is possible, else zero [W, columns]."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    for step in range(first, last):
        _, sums, edge, fan_in, most, _, _ = described(table, step)
        edges = sums * fan_in
        for tile in range(tl.program_id(1), tl.cdiv(edges, SUMS), tl.num_programs(1)):
            member = tile * SUMS + tl.arange(0, SUMS)
            live = (member < edges) & (edge + member >= num_fixed)
            inside = live[:, None] & (column < columns)[None, :]
            value = edge_values(
                values, values, factor_start, factors, edge + member, live, column, inside,
                columns, num_fixed, most, False, SUMS, COLUMNS,
            )  # fmt: skip
            flag = value > float("-inf")
            tl.store(flags + offsets(edge + member - num_fixed, column, columns), flag.to(tl.int8), mask=inside)


@triton.jit
def upward_tangent(
    values,
    weights,
    d_values,
    d_weights,
    table,
    factor_start,
    factors,
    first,
    last,
    columns,
    num_fixed,
    WEIGHTED: tl.constexpr,
    SUMS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Fill in the changes of the values [rows, columns] along changes of weights and leaves."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    for step in range(first, last):
        row, sums, edge, fan_in, most, _, _ = described(table, step)
        for tile in range(tl.program_id(1), tl.cdiv(sums, SUMS), tl.num_programs(1)):
            member, live, inside = members(tile, sums, column, columns, SUMS)
            own = tl.load(values + offsets(row + member, column, columns), mask=inside, other=0.0)
            change = tl.zeros([SUMS, COLUMNS], values.dtype.element_ty)
            for k in range(fan_in):
                number = edge + member * fan_in + k
                value = edge_values(
                    values, weights, factor_start, factors, number, live, column, inside,
                    columns, num_fixed, most, WEIGHTED, SUMS, COLUMNS,
                )  # fmt: skip
                d_value = edge_values(
                    d_values, d_weights, factor_start, factors, number, live, column, inside,
                    columns, num_fixed, most, WEIGHTED, SUMS, COLUMNS,
                )  # fmt: skip
                change += share_of(value, own) * d_value
            tl.store(d_values + offsets(row + member, column, columns), change, mask=inside)
        tl.debug_barrier()


@triton.jit
def downward_tangent(
    values,
    weights,
    d_values,
    d_weights,
    flows,
    d_flows,
    d_literals,
    table,
    factor_start,
    factors,
    parent_start,
    parents,
    first,
    last,
    columns,
    num_fixed,
    root,
    WEIGHTED: tl.constexpr,
    SUMS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Fill in the changes of the flows [edges, columns]; `flows` are those of `downward`."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    top = tl.load(values + tl.full([COLUMNS], root, tl.int64) * columns + column, mask=column < columns, other=0.0)
    handed_out = tl.where(top > float("-inf"), tl.full([COLUMNS], 1.0, values.dtype.element_ty), 0.0)
    for back in range(first, last):
        step = last - 1 - back + first
        row, sums, edge, fan_in, most, most_parents, _ = described(table, step)
        for tile in range(tl.program_id(1), tl.cdiv(sums, SUMS), tl.num_programs(1)):
            member, live, inside = members(tile, sums, column, columns, SUMS)
            arriving = gathered(
                flows, parent_start, parents, row + member, live, column, inside, columns, most_parents, SUMS, COLUMNS
            )
            d_arriving = gathered(
                d_flows, parent_start, parents, row + member, live, column, inside, columns, most_parents, SUMS, COLUMNS
            )
            is_root = (row + member == root)[:, None]
            arriving = tl.where(is_root, handed_out[None, :], arriving)
            d_arriving = tl.where(is_root, 0.0, d_arriving)
            if fan_in == 0:
                tl.store(d_literals + offsets(row + member, column, columns), d_arriving, mask=inside)
            own = tl.load(values + offsets(row + member, column, columns), mask=inside, other=0.0)
            d_own = tl.load(d_values + offsets(row + member, column, columns), mask=inside, other=0.0)
            for k in range(fan_in):
                number = edge + member * fan_in + k
                value = edge_values(
                    values, weights, factor_start, factors, number, live, column, inside,
                    columns, num_fixed, most, WEIGHTED, SUMS, COLUMNS,
                )  # fmt: skip
                d_value = edge_values(
                    d_values, d_weights, factor_start, factors, number, live, column, inside,
                    columns, num_fixed, most, WEIGHTED, SUMS, COLUMNS,
                )  # fmt: skip
                change = share_of(value, own) * ((d_value - d_own) * arriving + d_arriving)
                tl.store(d_flows + offsets(number, column, columns), change, mask=inside)
        tl.debug_barrier()


@triton.jit
def drawn(
    values,
    weights,
    flows,
    literals,
    uniform,
    source,
    table,
    factor_start,
    factors,
    parent_start,
    parents,
    first,
    last,
    columns,
    samples,
    num_fixed,
    num_leaves,
    root,
    below_one,
    WEIGHTED: tl.constexpr,
    SUMS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Draw one edge of every sum that a sample reaches; flows are 0 or 1 [edges, samples], int8.

    Sample s is drawn from column `source[s]`, with the numbers `uniform` [sums, samples] in [0, 1).
    """
    sample = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    known = sample < samples
    column = tl.load(source + sample, mask=known, other=0)
    for back in range(first, last):
        step = last - 1 - back + first
        row, sums, edge, fan_in, most, most_parents, _ = described(table, step)
        for tile in range(tl.program_id(1), tl.cdiv(sums, SUMS), tl.num_programs(1)):
            member = tile * SUMS + tl.arange(0, SUMS)
            live = member < sums
            inside = live[:, None] & known[None, :]
            arriving = gathered(
                flows, parent_start, parents, row + member, live, sample, inside, samples, most_parents, SUMS, COLUMNS
            )
            arriving = tl.where((row + member == root)[:, None], 1, arriving)
            if fan_in == 0:
                tl.store(literals + offsets(row + member, sample, samples), arriving, mask=inside)
            own = tl.load(values + offsets(row + member, column, columns), mask=inside, other=0.0)
            whole = tl.zeros([SUMS, COLUMNS], values.dtype.element_ty)
            for k in range(fan_in):
                value = edge_values(
                    values, weights, factor_start, factors, edge + member * fan_in + k, live, column, inside,
                    columns, num_fixed, most, WEIGHTED, SUMS, COLUMNS,
                )  # fmt: skip
                whole += share_of(value, own)
            chosen = inside & (row + member >= num_leaves)[:, None]
            number = tl.load(uniform + offsets(row + member - num_leaves, sample, samples), mask=chosen, other=0.0)
            # strictly below the whole, so that an edge of probability zero is never drawn
            threshold = tl.minimum(number * whole, whole * below_one)
            passed = tl.zeros([SUMS, COLUMNS], values.dtype.element_ty)
            for k in range(fan_in):
                value = edge_values(
                    values, weights, factor_start, factors, edge + member * fan_in + k, live, column, inside,
                    columns, num_fixed, most, WEIGHTED, SUMS, COLUMNS,
                )  # fmt: skip
                upto = passed + share_of(value, own)
                taken = (upto > threshold) & (passed <= threshold)
                result = tl.where(taken, arriving, 0)
                tl.store(flows + offsets(edge + member * fan_in + k, sample, samples), result, mask=inside)
                passed = upto
        tl.debug_barrier()


# parts of the kernels -------------------------------------------------------------------------------------------------


@triton.jit
def described(table, step):
    """What the table says of a step."""
    at = table + step * FIELDS
    row, sums, edge, fan_in = tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3)
    return row, sums, edge, fan_in, tl.load(at + 4), tl.load(at + 5), tl.load(at + 6)


@triton.jit
def members(tile, sums, column, columns, SUMS: tl.constexpr):
    """The sums of a tile within their step [SUMS], which of them exist, and which numbers do [SUMS, COLUMNS]."""
    member = tile * SUMS + tl.arange(0, SUMS)
    live = member < sums
    return member, live, live[:, None] & (column < columns)[None, :]


@triton.jit
def edge_values(
    values,
    weights,
    factor_start,
    factors,
    edge,
    live,
    column,
    inside,
    columns,
    num_fixed,
    most,
    WEIGHTED: tl.constexpr,
    SUMS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """The sum of an edge's factors and its weight [SUMS, COLUMNS], one edge per sum of the tile."""
    start = tl.load(factor_start + edge, mask=live, other=0)
    end = tl.load(factor_start + edge + 1, mask=live, other=0)
    result = tl.zeros([SUMS, COLUMNS], values.dtype.element_ty)
    for f in range(most):
        row = tl.load(factors + start + f, mask=start + f < end, other=0)
        has = inside & (start + f < end)[:, None]
        result += tl.load(values + offsets(row, column, columns), mask=has, other=0.0)
    if WEIGHTED:
        has = inside & (edge >= num_fixed)[:, None]
        result += tl.load(weights + offsets(edge - num_fixed, column, columns), mask=has, other=0.0)
    return result


@triton.jit
def gathered(
    flows,
    parent_start,
    parents,
    row,
    live,
    column,
    inside,
    columns,
    most,
    SUMS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """What the edges above the rows hand down [SUMS, COLUMNS]."""
    start = tl.load(parent_start + row, mask=live, other=0)
    end = tl.load(parent_start + row + 1, mask=live, other=0)
    result = tl.zeros([SUMS, COLUMNS], flows.dtype.element_ty)
    for p in range(most):
        edge = tl.load(parents + start + p, mask=start + p < end, other=0)
        has = inside & (start + p < end)[:, None]
        result += tl.load(flows + offsets(edge, column, columns), mask=has, other=0)
    return result


@triton.jit
def share_of(value, own):
    """The probability of an edge given its sum; zero where the sum is impossible."""
    return tl.where(own == float("-inf"), 0.0, tl.exp(value - tl.where(own == float("-inf"), 0.0, own)))


@triton.jit
def offsets(row, column, columns):
    """Where the numbers of some rows are in a tensor [rows, columns]."""
    return row.to(tl.int64)[:, None] * columns + column[None, :]
