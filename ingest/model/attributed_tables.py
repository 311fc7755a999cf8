"""An attribution as columns and rows of the warehouse's tables."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .attribution import Attribution
from .lives import Lives
from .numbered_program import NONE, Ints
from .origins.passes import PASSES
from .origins.roles import ROLES
from .origins.touches import idle_stretches, last_uses
from .origins.ways import RULES


def numbers_of(attribution: Attribution, values: pa.Table) -> Ints:
    """The number in the dataflow of each of a module's values; NONE where the text has none.

    `values` has the columns instruction_id and shape_index.
    """
    derived = attribution.derived
    slots, defined_at = derived.dataflow.slots, derived.dataflow.defined_at
    indices = slots.trees.index_texts
    width = len(indices)
    ours = slots.instruction[defined_at] * width + slots.trees.index[slots.node[defined_at]]
    codes = pc.index_in(values["shape_index"], value_set=pa.array(indices, pa.large_string()))
    known = pc.is_valid(codes).to_numpy()
    rows = values["instruction_id"].to_numpy().astype(np.int64)
    theirs = rows * width + pc.fill_null(codes, 0).to_numpy()
    order = np.argsort(ours)
    at = np.minimum(np.searchsorted(ours, theirs, sorter=order), max(len(ours) - 1, 0))
    found = known & (ours[order[at]] == theirs) if len(ours) else np.zeros(len(theirs), bool)
    return np.where(found, order[at] if len(ours) else NONE, NONE)


def instruction_columns(attribution: Attribution, count: int) -> dict[str, pa.Array]:
    """The columns scope_id and pass of `count` instructions, those of the text first."""
    passes = attribution.passes.codes.astype(np.int64)
    return {
        "scope_id": _padded(attribution.scope, count),
        "pass": _texts(_padded(passes, count), PASSES),
    }


def value_columns(attribution: Attribution, values: pa.Table, number: Ints) -> dict[str, pa.Array]:
    """The columns of `values` that an attribution gives; `number` is that of `numbers_of`."""
    value_id = values["value_id"].to_numpy()
    # The id of a set is the smallest of its values that the module has.
    alias_set = _taken(attribution.derived.liveness.alias_set, number)
    smallest = np.full(len(attribution.derived.dataflow) + 1, np.iinfo(np.int32).max)
    np.minimum.at(smallest, alias_set, value_id)
    last_use = last_uses(attribution.touches, len(attribution.derived.dataflow))
    if not attribution.is_scheduled:
        last_use[:] = NONE
    origins = attribution.origins
    return {
        "origin_instruction_id": _known(_taken(origins.row, number)),
        "origin_rule": _texts(_known(_taken(origins.rule, number)), RULES),
        "pass": _texts(_known(_taken(attribution.value_pass, number)), PASSES),
        "role": _texts(_known(_taken(attribution.roles, number)), ROLES),
        "alias_set": _known(np.where(alias_set == NONE, NONE, smallest[alias_set])),
        "residual_id": _known(_taken(attribution.residuals.of, number)),
        "last_use_time": _known(_taken(last_use, number)),
    }


def buffer_tables(
    attribution: Attribution, values: pa.Table, number: Ints, lives: Lives
) -> dict[str, pa.Table]:
    """The rows of `alias_sets` and `residuals`: of values in temp allocations that have a life.

    `values` has the columns value_id, size_bytes, alias_set and residual_id.
    """
    alias_set, residual = (
        pc.fill_null(values[name], NONE).to_numpy().astype(np.int64)
        for name in ("alias_set", "residual_id")
    )
    set_rows, _ = _stretches(attribution, values, number, lives, alias_set)
    residual_rows, of = _stretches(attribution, values, number, lives, residual)
    found = attribution.residuals
    names = {"group": "alias_set"}
    alias_sets = pa.table({names.get(name, name): column for name, column in set_rows.items()})
    residuals = pa.table(
        {
            "residual_id": residual_rows.pop("group"),
            "layers": pa.array(found.layers[of], pa.int32()),
            "made_instruction_id": _known(attribution.origins.row[found.value[of]]),
            "read_instruction_id": _known(found.reader[of]),
            **residual_rows,
        }
    )
    return {"alias_sets": alias_sets, "residuals": residuals}


def _stretches(
    attribution: Attribution, values: pa.Table, number: Ints, lives: Lives, group: Ints
) -> tuple[dict[str, pa.Array], Ints]:
    """A row for each group of values: its largest value, its life, when it is idle."""
    held = np.flatnonzero(lives.counts & (group != NONE) & (number != NONE))
    groups, place = np.unique(group[held], return_inverse=True)
    start, end = np.full(len(groups), np.iinfo(np.int32).max), np.zeros(len(groups), np.int64)
    np.minimum.at(start, place, lives.start[held])
    np.maximum.at(end, place, lives.end[held])
    by_size = np.lexsort((held, -values["size_bytes"].to_numpy()[held], place))
    largest = held[by_size[np.searchsorted(place[by_size], np.arange(len(groups)))]]
    of = np.full(len(attribution.derived.dataflow), NONE)
    of[number[held]] = place
    # What lives out is not read after the program's last instruction.
    last = np.minimum(end, len(attribution.derived.schedule) - 1)
    idle = idle_stretches(attribution.touches, of, last, lives.peak[largest])
    rows = {
        "group": groups,
        "value_id": values["value_id"].to_numpy()[largest],
        "start_time": start,
        "end_time": end,
        "idle_start_time": idle.start,
        "idle_end_time": idle.end,
        "peak_idle_time": idle.at_peak,
    }
    return {name: pa.array(column, pa.int32()) for name, column in rows.items()}, groups


def _taken(column: Ints, number: Ints) -> Ints:
    """The column's entries at these numbers; NONE at NONE."""
    found: Ints = np.append(column, NONE)[number]
    return found


def _known(column: Ints) -> pa.Array:
    return pa.array(column, pa.int32(), mask=column == NONE)


def _padded(column: Ints, count: int) -> pa.Array:
    """The column with nulls for NONE and at its end."""
    rest = np.full(count - len(column), NONE)
    return _known(np.concatenate([column, rest]))


def _texts(codes: pa.Array, texts: tuple[str, ...]) -> pa.Array:
    """Numbers as texts."""
    return pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.large_string()))
