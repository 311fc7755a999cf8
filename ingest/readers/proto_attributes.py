"""The attributes of a HloInstructionProto that concern dimensions, as HLO text prints them."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

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
    """The attributes of an instruction that concern dimensions; "" without any."""
    texts: list[str] = []
    for field, print_value in _PRINTERS.items():
        value = getattr(message, field)
        # The message of a dot that contracts nothing is empty.
        if value or (field == "dot_dimension_numbers" and message.HasField(field)):
            texts.append(print_value(value))
        elif field == "dimensions" and opcode in _ALWAYS_DIMENSIONS:
            texts.append("dimensions={}")
    if opcode == "iota" and message.dimensions:
        texts[0] = f"iota_dimension={_comma_separated(message.dimensions)}"
    return ", ".join([text for text in texts if text])


def index_text(index: Iterable[int]) -> str:
    """Numbers in braces, such as `{1,0}`."""
    return f"{{{_comma_separated(index)}}}"


def _comma_separated(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _number_list(name: str) -> Callable[[Iterable[int]], str]:
    """A printer of `name={1,0}`."""
    return lambda numbers: f"{name}={index_text(numbers)}"


def _group_count(name: str) -> Callable[[int], str]:
    """A printer of `name=2`, which XLA prints only for several groups."""
    return lambda count: f"{name}={count}" if count > 1 else ""


def _message(type_: str, print_message: Callable[[Any], str]) -> Callable[[bytes], str]:
    """A printer of a message in bytes; equal bytes are printed once."""
    return lru_cache(maxsize=1000)(lambda data: print_message(parse(type_, data)))


def _messages(name: str, type_: str, print_message: Callable[[Any], str]) -> Callable[..., str]:
    """A printer of `name={…, …}`, a list of messages."""
    print_bytes = _message(type_, print_message)
    return lambda messages: f"{name}={{{', '.join(map(print_bytes, messages))}}}"


def _slice_text(extent: Any) -> str:
    """`[0:16]`, and with a stride `[0:16:2]`."""
    stride = f":{extent.stride}" if extent.stride > 1 else ""
    return f"[{extent.start}:{extent.limit}{stride}]"


def _padding_text(config: Any) -> str:
    """`padding=0_1x2_3`; with padding between elements `0_1_2x…`."""
    dimensions = config.dimensions
    columns = [
        [dimension.edge_padding_low for dimension in dimensions],
        [dimension.edge_padding_high for dimension in dimensions],
        [dimension.interior_padding for dimension in dimensions],
    ]
    if not any(columns[2]):
        columns.pop()
    return f"padding={_by_dimension(*columns)}" if dimensions else ""


def _window_text(window: Any) -> str:
    """`window={size=3x3 pad=1_1x1_1}`, without the parts that have no effect."""
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


def _convolution_text(numbers: Any) -> str:
    """`dim_labels=b01f_01io->b01f`."""
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


def _dot_text(dot: Any) -> str:
    return _dimension_lists(dot, _DOT_LISTS)


def _gather_text(gather: Any) -> str:
    lists = _dimension_lists(gather, _GATHER_LISTS)
    return f"{lists}, index_vector_dim={gather.index_vector_dim}"


def _scatter_text(scatter: Any) -> str:
    lists = _dimension_lists(scatter, _SCATTER_LISTS)
    return f"{lists}, index_vector_dim={scatter.index_vector_dim}"


def _aliasing_text(alias: Any) -> str:
    """A part of the result and the operand that it shares memory with: `{0}: (1, {})`."""
    operand = f"{alias.operand_index}, {index_text(alias.operand_shape_index)}"
    return f"{index_text(alias.output_shape_index)}: ({operand})"


# The printer of each field, in the order of the text.
_PRINTERS: Final[dict[str, Callable[[Any], str]]] = {
    "dimensions": _number_list("dimensions"),
    "slice_dimensions": _messages("slice", "SliceDimensions", _slice_text),
    "padding_config": _message("PaddingConfig", _padding_text),
    "dynamic_slice_sizes": _number_list("dynamic_slice_sizes"),
    "window": _message("Window", _window_text),
    "convolution_dimension_numbers": _message("ConvolutionDimensionNumbers", _convolution_text),
    "feature_group_count": _group_count("feature_group_count"),
    "batch_group_count": _group_count("batch_group_count"),
    "dot_dimension_numbers": _message("DotDimensionNumbers", _dot_text),
    "gather_dimension_numbers": _message("GatherDimensionNumbers", _gather_text),
    "scatter_dimension_numbers": _message("ScatterDimensionNumbers", _scatter_text),
    "gather_slice_sizes": _number_list("slice_sizes"),
    "output_operand_aliasing": _messages(
        "output_to_operand_aliasing", "OutputOperandAliasing", _aliasing_text
    ),
}
