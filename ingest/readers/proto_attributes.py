"""The attributes of a HloInstructionProto that concern dimensions, as HLO text prints them."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from ...xla.program import index_text
from .proto_schema import parse

# The opcodes with such attributes; any may have `output_to_operand_aliasing`.
DIMENSIONED_OPCODES: Final = frozenset((
    "all-gather", "all-gather-start", "all-to-all", "broadcast", "concatenate", "convolution",
    "custom-call", "dot", "dynamic-slice", "gather", "get-dimension-size", "iota", "map", "pad",
    "reduce", "reduce-scatter", "reduce-window", "reverse", "scatter", "select-and-scatter",
    "set-dimension-size", "slice", "sort", "transpose",
))  # fmt: skip
# XLA prints the dimensions of these even if they have none.
_ALWAYS_DIMENSIONS: Final = frozenset(
    ("broadcast", "concatenate", "map", "reduce", "reverse", "transpose")
)
# The lists of dimension numbers in the order of the text, and their names there. XLA leaves out
# those whose names end in `?` if they are empty.
_DOT_LISTS: Final = {
    "lhs_batch_dimensions": "lhs_batch_dims?",
    "lhs_contracting_dimensions": "lhs_contracting_dims",
    "rhs_batch_dimensions": "rhs_batch_dims?",
    "rhs_contracting_dimensions": "rhs_contracting_dims",
}
_GATHER_LISTS: Final = {
    "offset_dims": "offset_dims",
    "collapsed_slice_dims": "collapsed_slice_dims",
    "start_index_map": "start_index_map",
    "operand_batching_dims": "operand_batching_dims?",
    "start_indices_batching_dims": "start_indices_batching_dims?",
}
_SCATTER_LISTS: Final = {
    "update_window_dims": "update_window_dims",
    "inserted_window_dims": "inserted_window_dims",
    "scatter_dims_to_operand_dims": "scatter_dims_to_operand_dims",
    "input_batching_dims": "input_batching_dims?",
    "scatter_indices_batching_dims": "scatter_indices_batching_dims?",
}


def attribute_text(message: Any, opcode: str) -> str:
    """The attributes of an instruction that concern dimensions, in XLA's order; "" without any."""
    texts: list[str] = []
    if opcode == "iota" and message.dimensions:
        texts.append(f"iota_dimension={_comma_separated(message.dimensions)}")
    elif message.dimensions or opcode in _ALWAYS_DIMENSIONS:
        texts.append(f"dimensions={index_text(message.dimensions)}")
    if message.slice_dimensions:
        texts.append(f"slice={{{', '.join(map(_slice_text, message.slice_dimensions))}}}")
    if message.padding_config:
        texts.append(_padding_text(message.padding_config))
    if message.dynamic_slice_sizes:
        texts.append(f"dynamic_slice_sizes={index_text(message.dynamic_slice_sizes)}")
    if message.window:
        texts.append(_window_text(message.window))
    if message.convolution_dimension_numbers:
        texts.append(_convolution_text(message.convolution_dimension_numbers))
    if message.feature_group_count > 1:
        texts.append(f"feature_group_count={message.feature_group_count}")
    if message.batch_group_count > 1:
        texts.append(f"batch_group_count={message.batch_group_count}")
    # The message of a dot that contracts nothing is empty.
    if message.HasField("dot_dimension_numbers"):
        texts.append(_dot_text(message.dot_dimension_numbers))
    if message.gather_dimension_numbers:
        texts.append(_gather_text(message.gather_dimension_numbers))
    if message.scatter_dimension_numbers:
        texts.append(_scatter_text(message.scatter_dimension_numbers))
    if message.gather_slice_sizes:
        texts.append(f"slice_sizes={index_text(message.gather_slice_sizes)}")
    if message.output_operand_aliasing:
        aliases = ", ".join(map(_aliasing_text, message.output_operand_aliasing))
        texts.append(f"output_to_operand_aliasing={{{aliases}}}")
    return ", ".join([text for text in texts if text])


def _comma_separated(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


# Each text is printed once for equal bytes.
@lru_cache(maxsize=1000)
def _slice_text(data: bytes) -> str:
    """`[0:16]`, and with a stride `[0:16:2]`."""
    extent = parse("SliceDimensions", data)
    stride = f":{extent.stride}" if extent.stride > 1 else ""
    return f"[{extent.start}:{extent.limit}{stride}]"


@lru_cache(maxsize=1000)
def _padding_text(data: bytes) -> str:
    """`padding=0_1x2_3`; with padding between elements `0_1_2x…`."""
    config = parse("PaddingConfig", data)
    dimensions = config.dimensions
    columns = [
        [dimension.edge_padding_low for dimension in dimensions],
        [dimension.edge_padding_high for dimension in dimensions],
        [dimension.interior_padding for dimension in dimensions],
    ]
    if not any(columns[2]):
        columns.pop()
    return f"padding={_by_dimension(*columns)}" if dimensions else ""


@lru_cache(maxsize=1000)
def _window_text(data: bytes) -> str:
    """`window={size=3x3 pad=1_1x1_1}`, without the parts that have no effect."""
    window = parse("Window", data)
    dimensions = window.dimensions
    if not dimensions:
        return ""

    def column(field: str) -> list[int]:
        return [getattr(dimension, field) for dimension in dimensions]

    low, high = column("padding_low"), column("padding_high")
    parts = [f"size={_by_dimension(column('size'))}"]
    if any(stride != 1 for stride in column("stride")):
        parts.append(f"stride={_by_dimension(column('stride'))}")
    if any(low) or any(high):
        parts.append(f"pad={_by_dimension(low, high)}")
    if any(dilation != 1 for dilation in column("base_dilation")):
        parts.append(f"lhs_dilate={_by_dimension(column('base_dilation'))}")
    if any(dilation != 1 for dilation in column("window_dilation")):
        parts.append(f"rhs_dilate={_by_dimension(column('window_dilation'))}")
    if any(column("window_reversal")):
        parts.append(f"rhs_reversal={_by_dimension(column('window_reversal'))}")
    return f"window={{{' '.join(parts)}}}"


def _by_dimension(*columns: Iterable[int]) -> str:
    """`0_1x2_3` for the columns [0, 2] and [1, 3]."""
    return "x".join(["_".join(map(str, row)) for row in zip(*columns, strict=True)])


@lru_cache(maxsize=1000)
def _convolution_text(data: bytes) -> str:
    """`dim_labels=b01f_01io->b01f`."""
    numbers = parse("ConvolutionDimensionNumbers", data)
    lhs = _dimension_labels(
        {numbers.input_batch_dimension: "b", numbers.input_feature_dimension: "f"},
        numbers.input_spatial_dimensions,
    )
    kernel = _dimension_labels(
        {
            numbers.kernel_input_feature_dimension: "i",
            numbers.kernel_output_feature_dimension: "o",
        },
        numbers.kernel_spatial_dimensions,
    )
    output = _dimension_labels(
        {numbers.output_batch_dimension: "b", numbers.output_feature_dimension: "f"},
        numbers.output_spatial_dimensions,
    )
    return f"dim_labels={lhs}_{kernel}->{output}"


def _dimension_labels(letters: dict[int, str], spatial: Iterable[int]) -> str:
    """The label of each dimension in order: a letter, or the number of a spatial dimension."""
    labels = letters | {dimension: str(number) for number, dimension in enumerate(spatial)}
    return "".join([labels[dimension] for dimension in sorted(labels)])


def _dimension_lists(message: Any, names: dict[str, str]) -> str:
    """Lists of dimensions, such as those that a dot contracts."""
    return ", ".join(
        [
            f"{name.rstrip('?')}={index_text(getattr(message, field))}"
            for field, name in names.items()
            if getattr(message, field) or not name.endswith("?")
        ]
    )


@lru_cache(maxsize=1000)
def _dot_text(data: bytes) -> str:
    return _dimension_lists(parse("DotDimensionNumbers", data), _DOT_LISTS)


@lru_cache(maxsize=1000)
def _gather_text(data: bytes) -> str:
    gather = parse("GatherDimensionNumbers", data)
    lists = _dimension_lists(gather, _GATHER_LISTS)
    return f"{lists}, index_vector_dim={gather.index_vector_dim}"


@lru_cache(maxsize=1000)
def _scatter_text(data: bytes) -> str:
    scatter = parse("ScatterDimensionNumbers", data)
    lists = _dimension_lists(scatter, _SCATTER_LISTS)
    return f"{lists}, index_vector_dim={scatter.index_vector_dim}"


@lru_cache(maxsize=1000)
def _aliasing_text(data: bytes) -> str:
    """A part of the result and the operand that it shares memory with: `{0}: (1, {})`."""
    alias = parse("OutputOperandAliasing", data)
    operand = f"{alias.operand_index}, {index_text(alias.operand_shape_index)}"
    return f"{index_text(alias.output_shape_index)}: ({operand})"
