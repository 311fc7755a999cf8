"""The attributes of an instruction in HLO text, such as `calls=%f, metadata={op_name="a"}`."""

import re
from dataclasses import dataclass
from typing import Final

from ...xla.aliases import parse_aliases
from ...xla.program import NO_METADATA, NONE, Alias, Metadata
from .backend_config import BackendConfig, has_gpu_words, read_backend_config
from .instruction_line import read_metadata, read_small_number, read_string, split_attributes

# The attributes that name computations.
_CALLS: Final = """
    calls to_apply condition body select scatter true_computation false_computation
    branch_computations called_computations
"""
# The attributes of `Program.attributes`.
_DIMENSIONS: Final = """
    dimensions iota_dimension slice padding dynamic_slice_sizes window dim_labels
    feature_group_count batch_group_count lhs_batch_dims lhs_contracting_dims rhs_batch_dims
    rhs_contracting_dims offset_dims collapsed_slice_dims start_index_map operand_batching_dims
    start_indices_batching_dims update_window_dims inserted_window_dims
    scatter_dims_to_operand_dims input_batching_dims scatter_indices_batching_dims
    index_vector_dim slice_sizes output_to_operand_aliasing
"""
_CALL_NAMES: Final = frozenset(_CALLS.split())
_DIMENSION_NAMES: Final = frozenset(_DIMENSIONS.split())
_DIMENSION_VALUE: Final = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}|[^ ,{}]+")
_KIND: Final = re.compile(r"k[A-Za-z]+")
# A tuple's sharding contains those of its arrays, and each may contain one more list in braces.
_SHARDING: Final = re.compile(r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}")


@dataclass(slots=True)
class Attributes:
    """The attributes of an instruction; the defaults stand for an attribute that is not printed.

    Attributes:
        calls: pairs of an attribute and the name of a computation.
        dimensions: as `Program.attributes`.
        control_predecessors: names of instructions.
        is_less_than: whether a compare has the direction LT.
    """

    metadata: Metadata = NO_METADATA
    config: BackendConfig | None = None
    tuple_index: int = NONE
    calls: tuple[tuple[str, str], ...] = ()
    dimensions: str = ""
    operand_aliasing: tuple[Alias, ...] = ()
    fusion_kind: str = ""
    custom_call_target: str | None = None
    sharding: str | None = None
    control_predecessors: tuple[str, ...] = ()
    is_less_than: bool = False


class AttributeReader:
    """Reads the attributes of one program's instructions, each distinct text once.

    Attributes:
        is_gpu: whether XLA for GPU wrote attributes that were read.
    """

    def __init__(self) -> None:
        self.is_gpu = False
        self._attributes: dict[str, Attributes] = {}
        self._metadata: dict[str, Metadata] = {}
        self._configs: dict[str, BackendConfig] = {}

    def read(self, text: str) -> Attributes:
        """The attributes in the text after an instruction's operands. Raises DumpError."""
        attributes = self._attributes.get(text)
        if attributes is None:
            attributes = self._attributes[text] = self._read(text)
        return attributes

    def _read(self, text: str) -> Attributes:
        attributes = Attributes()
        dimensions: list[str] = []
        for name, value in split_attributes(text).items():
            if name == "metadata":
                if value not in self._metadata:
                    self._metadata[value] = read_metadata(value)
                attributes.metadata = self._metadata[value]
                self.is_gpu = self.is_gpu or has_gpu_words(value)
            elif name == "backend_config":
                if value not in self._configs:
                    self._configs[value] = read_backend_config(value)
                attributes.config = self._configs[value]
            elif name == "index":
                attributes.tuple_index = read_small_number(value)
            elif name in _CALL_NAMES:
                attributes.calls += tuple((name, callee) for callee in _names(value))
            elif name in _DIMENSION_NAMES:
                if match := _DIMENSION_VALUE.match(value):
                    dimensions.append(f"{name}={match[0]}")
                    if name == "output_to_operand_aliasing":
                        attributes.operand_aliasing = tuple(parse_aliases(match[0][1:-1]))
            elif name == "kind":
                attributes.fusion_kind = match[0] if (match := _KIND.match(value)) else ""
            elif name == "custom_call_target":
                attributes.custom_call_target = read_string(value)
                self.is_gpu = self.is_gpu or has_gpu_words(value)
            elif name == "sharding":
                attributes.sharding = match[0] if (match := _SHARDING.match(value)) else None
            elif name == "control-predecessors":
                attributes.control_predecessors = tuple(_names(value))
            elif name == "direction":
                attributes.is_less_than = value.startswith("LT")
        attributes.dimensions = ", ".join(dimensions)
        return attributes


def _names(value: str) -> list[str]:
    """The names in `%a` or `{%a, %b}`."""
    return value.partition("}")[0].removeprefix("{").replace("%", "").split(", ")
