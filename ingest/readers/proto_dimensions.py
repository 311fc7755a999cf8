"""What a HloModuleProto's instructions do to dimensions, printed as HLO text prints it."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .backend_configs import placed
from .lines import Positions
from .proto_instructions import ProtoInstructions
from .proto_schema import distinct, parse

# A text of each instruction that has one: the rows, the texts.
_Column = tuple[Positions, pa.Array]

# These print their dimensions even where they have none.
_DIMENSIONED = ("broadcast", "concatenate", "map", "reduce", "reverse", "transpose")
# The lists of dimension numbers, in the order of the text, and their names there; those that the
# text leaves out if they are empty end in `?`.
_DOT = {
    "lhs_batch_dimensions": "lhs_batch_dims?",
    "lhs_contracting_dimensions": "lhs_contracting_dims",
    "rhs_batch_dimensions": "rhs_batch_dims?",
    "rhs_contracting_dimensions": "rhs_contracting_dims",
}
_GATHER = {
    "offset_dims": "offset_dims",
    "collapsed_slice_dims": "collapsed_slice_dims",
    "start_index_map": "start_index_map",
    "operand_batching_dims": "operand_batching_dims?",
    "start_indices_batching_dims": "start_indices_batching_dims?",
}
_SCATTER = {
    "update_window_dims": "update_window_dims",
    "inserted_window_dims": "inserted_window_dims",
    "scatter_dims_to_operand_dims": "scatter_dims_to_operand_dims",
    "input_batching_dims": "input_batching_dims?",
    "scatter_indices_batching_dims": "scatter_indices_batching_dims?",
}


def dimension_attributes(rows: ProtoInstructions) -> pa.Array:
    """The column `attributes` of the warehouse's `instructions`. Raises DumpError."""
    texts: list[_Column] = [
        _dimensions(rows),
        _repeated(rows, "slice_dimensions", "SliceDimensions", "slice", _slice),
        _once(rows, "padding_config", "PaddingConfig", _padding),
        _listed(rows, "dynamic_slice_sizes", "dynamic_slice_sizes"),
        _once(rows, "window", "Window", _window),
        _once(
            rows,
            "convolution_dimension_numbers",
            "ConvolutionDimensionNumbers",
            _convolution,
        ),
        _groups(rows, "feature_group_count"),
        _groups(rows, "batch_group_count"),
        _once(
            rows, "dot_dimension_numbers", "DotDimensionNumbers", lambda dot: _numbered(dot, _DOT)
        ),
        _once(
            rows,
            "gather_dimension_numbers",
            "GatherDimensionNumbers",
            lambda gather: _indexed(gather, _GATHER),
        ),
        _once(
            rows,
            "scatter_dimension_numbers",
            "ScatterDimensionNumbers",
            lambda scatter: _indexed(scatter, _SCATTER),
        ),
        _listed(rows, "gather_slice_sizes", "slice_sizes"),
        _repeated(
            rows,
            "output_operand_aliasing",
            "OutputOperandAliasing",
            "output_to_operand_aliasing",
            _pair,
        ),
    ]
    row = np.concatenate([row for row, _ in texts])
    order = np.argsort(row, kind="stable")
    column = pa.concat_arrays([text for _, text in texts]).take(pa.array(order))
    filled, begin = np.unique(row[order], return_index=True)
    return placed(_lists(begin, column, ", ").dictionary_encode(), filled, len(rows))


def _lists(begin: Positions, texts: pa.Array, separator: str) -> pa.Array:
    """Texts joined, those from each beginning to the next one."""
    lists = pa.LargeListArray.from_arrays(pa.array(np.append(begin, len(texts))), texts)
    return pc.binary_join(lists, pa.scalar(separator, pa.large_string()))


def _dimensions(rows: ProtoInstructions) -> _Column:
    """`dimensions={0,1}`, and of an iota `iota_dimension=0`."""
    row, texts = _number_lists(rows, "dimensions")
    without = np.setdiff1d(np.flatnonzero(rows.has_opcode(*_DIMENSIONED)), row)
    is_iota = rows.has_opcode("iota")[row]
    named = pc.if_else(
        pa.array(is_iota),
        _between("iota_dimension=", texts, ""),
        _braced("dimensions", texts),
    )
    empty = pa.repeat(pa.scalar("dimensions={}", pa.large_string()), len(without))
    return np.concatenate([row, without]), pa.concat_arrays([named, empty])


def _listed(rows: ProtoInstructions, field: str, name: str) -> _Column:
    row, texts = _number_lists(rows, field)
    return row, _braced(name, texts)


def _number_lists(rows: ProtoInstructions, field: str) -> _Column:
    """A repeated field of numbers as texts such as `0,1`."""
    message, numbers = rows.messages.lists(field)
    filled, begin = np.unique(message, return_index=True)
    return rows.row_of[filled], _lists(begin, pa.array(numbers).cast(pa.large_string()), ",")


def _braced(name: str, texts: pa.Array) -> pa.Array:
    return _between(f"{name}={{", texts, "}")


def _between(before: str, texts: pa.Array, after: str) -> pa.Array:
    begin, end, nothing = (pa.scalar(text, texts.type) for text in (before, after, ""))
    return pc.binary_join_element_wise(begin, texts, end, nothing)


def _groups(rows: ProtoInstructions, field: str) -> _Column:
    """A number of groups, which XLA prints only if there are several."""
    groups = rows.messages.numbers(field)
    message = np.flatnonzero(groups > 1)
    texts = pa.array(groups[message]).cast(pa.large_string())
    return rows.row_of[message], _between(f"{field}=", texts, "")


def _texts(values: pa.Array, type_: str, text: Callable[[Any], str]) -> pa.Array:
    """The text of each message; few are distinct, so Python reads each of these."""
    code, messages = distinct(values)
    texts = [text(parse(type_, message)) for message in messages]
    return pa.array(texts, pa.large_string()).take(pa.array(code))


def _once(rows: ProtoInstructions, field: str, type_: str, text: Callable[[Any], str]) -> _Column:
    """The attributes that one message holds."""
    message, values = rows.messages.contents(field)
    texts = _texts(values, type_, text)
    filled = np.flatnonzero(pc.not_equal(texts, "").to_numpy(zero_copy_only=False))
    return rows.row_of[message[filled]], texts.take(pa.array(filled))


def _repeated(
    rows: ProtoInstructions, field: str, type_: str, name: str, text: Callable[[Any], str]
) -> _Column:
    """An attribute that lists what several messages hold."""
    message, values = rows.messages.contents(field)
    filled, begin = np.unique(message, return_index=True)
    return rows.row_of[filled], _braced(name, _lists(begin, _texts(values, type_, text), ", "))


def _slice(extent: Any) -> str:
    """`[0:16]`, and with a stride `[0:16:2]`."""
    stride = f":{extent.stride}" if extent.stride > 1 else ""
    return f"[{extent.start}:{extent.limit}{stride}]"


def _padding(config: Any) -> str:
    """`padding=0_1x2_3`, and with something between the elements `0_1_2x…`."""
    dimensions = config.dimensions
    columns = [
        [each.edge_padding_low for each in dimensions],
        [each.edge_padding_high for each in dimensions],
    ]
    if any(each.interior_padding for each in dimensions):
        columns.append([each.interior_padding for each in dimensions])
    return f"padding={_by_dimension(*columns)}" if dimensions else ""


def _window(window: Any) -> str:
    """`window={size=3x3 pad=1_1x1_1}`: what does nothing is left out."""
    dimensions = window.dimensions
    if not dimensions:
        return ""

    def column(field: str) -> list[int]:
        return [getattr(each, field) for each in dimensions]

    low, high = column("padding_low"), column("padding_high")
    parts = [f"size={_by_dimension(column('size'))}"]
    if any(each != 1 for each in column("stride")):
        parts.append(f"stride={_by_dimension(column('stride'))}")
    if any(low) or any(high):
        parts.append(f"pad={_by_dimension(low, high)}")
    if any(each != 1 for each in column("base_dilation")):
        parts.append(f"lhs_dilate={_by_dimension(column('base_dilation'))}")
    if any(each != 1 for each in column("window_dilation")):
        parts.append(f"rhs_dilate={_by_dimension(column('window_dilation'))}")
    if any(column("window_reversal")):
        parts.append(f"rhs_reversal={_by_dimension(column('window_reversal'))}")
    return f"window={{{' '.join(parts)}}}"


def _by_dimension(*columns: Iterable[int]) -> str:
    return "x".join("_".join(map(str, row)) for row in zip(*columns, strict=True))


def _convolution(numbers: Any) -> str:
    """`dim_labels=b01f_01io->b01f`."""
    lhs, kernel, output = (
        _labels({batch: first, feature: second}, spatial)
        for batch, first, feature, second, spatial in (
            (
                *(numbers.input_batch_dimension, "b", numbers.input_feature_dimension, "f"),
                numbers.input_spatial_dimensions,
            ),
            (
                *(numbers.kernel_input_feature_dimension, "i"),
                *(numbers.kernel_output_feature_dimension, "o"),
                numbers.kernel_spatial_dimensions,
            ),
            (
                *(numbers.output_batch_dimension, "b", numbers.output_feature_dimension, "f"),
                numbers.output_spatial_dimensions,
            ),
        )
    )
    return f"dim_labels={lhs}_{kernel}->{output}"


def _labels(letters: dict[int, str], spatial: Iterable[int]) -> str:
    """The letter or, of a dimension of space, the number of each dimension, in order."""
    labels = letters | {place: str(number) for number, place in enumerate(spatial)}
    return "".join(labels[place] for place in sorted(labels))


def _numbered(message: Any, names: dict[str, str]) -> str:
    """Lists of dimensions, such as what a dot contracts."""
    return ", ".join(
        f"{name.rstrip('?')}={index_text(getattr(message, field))}"
        for field, name in names.items()
        if getattr(message, field) or not name.endswith("?")
    )


def _indexed(message: Any, names: dict[str, str]) -> str:
    """The dimensions of a gather or a scatter."""
    return f"{_numbered(message, names)}, index_vector_dim={message.index_vector_dim}"


def _pair(alias: Any) -> str:
    """An output and the operand that it shares memory with: `{0}: (1, {})`."""
    operand = f"{alias.operand_index}, {index_text(alias.operand_shape_index)}"
    return f"{index_text(alias.output_shape_index)}: ({operand})"


def index_text(index: Iterable[int]) -> str:
    """Numbers in braces, such as `{1,0}`."""
    return f"{{{','.join(map(str, index))}}}"
