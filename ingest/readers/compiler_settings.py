"""Readers of the files beside a dump: compiler flags and the target device."""

import re
from typing import NamedTuple

from ...xla.errors import DumpError
from .lines import Lines, excerpt

# TPUs as users name them, with the memory that XLA gives a program on one.
#
# libtpu names a chip by a code name, or by a number that stands for it in some releases. The
# memory is XLA's capacity: the device's memory without what libtpu reserves. Both were measured
# with libtpu, see `docs/devices.md`, which also says where the releases differ.

_MIB = 2**20
_GIB = 2**30


class Device(NamedTuple):
    """What one program is compiled for: a chip, or a core where each core runs a program."""

    kind: str
    memory_bytes: int


V2, V3, V4, V5, V6E, V7X = "TPU v2", "TPU v3", "TPU v4", "TPU v5p", "TPU v6e", "TPU7x"
_VERSIONS = {
    "JELLYFISH": V2,
    "ba16c7433": V2,
    "DRAGONFISH": V3,
    "6bf72d463e": V3,
    "PUFFERFISH": V4,
    "e0897fcce0": V4,
    "VIPERFISH": V5,
    "2093c6a02": V5,
    "GHOSTLITE": V6E,
    "cc8675309": V6E,
    "6acc60406": V7X,
}
# By version, variant and the name of the chip's configuration. Two cores of a v4 or v5p are one
# device, unless the configuration says otherwise; those of v2, v3 and 7x are two devices.
_DEVICES = {
    (V2, "", "default"): Device("TPU v2", 8 * _GIB - 530 * _MIB),
    (V3, "", "default"): Device("TPU v3", 16 * _GIB - 530 * _MIB),
    (V4, "", "default"): Device("TPU v4 core", 16 * _GIB - 1539 * _MIB // 2),
    (V4, "", "megacore"): Device("TPU v4", 32 * _GIB - 1283 * _MIB),
    (V5, "lite", "default"): Device("TPU v5e", 16 * _GIB - 258 * _MIB),
    (V5, "", "default"): Device("TPU v5p", 96 * _GIB - 279 * _MIB),
    (V5, "", "megachip"): Device("TPU v5p", 96 * _GIB - 279 * _MIB),
    (V5, "", "legacy"): Device("TPU v5p core", 48 * _GIB - 535 * _MIB // 2),
    (V6E, "", "default"): Device("TPU v6e", 32 * _GIB - 776 * _MIB),
    (V7X, "", "default"): Device("TPU7x", 96 * _GIB - 1292 * _MIB),
}


def find_device(version: str, variant: str, configuration: str) -> Device | None:
    """The TPU of a version, a variant and a configuration as libtpu prints them, if known."""
    return _DEVICES.get((_VERSIONS.get(version, ""), variant, configuration or "default"))


# Readers of the files beside a dump: compiler flags and the target device.

# Flags that say what is dumped, where a toolchain lies, what is cached or where a profile is
# written differ from run to run and do not change the program. A profile that is read does.
_IGNORED = re.compile(
    r"(?:^|_)dumps?(?:_|$)|_profile_to$"
    r"|^(?!.*profile).*(?:_dir|_directory|_cache_file|_cache_path)$"
)
# The folder of a file that is read is the machine's: `/home/me/step.pb` is `step.pb`.
_FOLDER = re.compile(r"(?:(?<=[,=\s'\"])|^)(?:[a-z]+://|~?/|[A-Za-z]:\\)(?:[^,\s'\"]*[/\\])?")
_FLAG = re.compile(r"^--([^=\s]+)(?:=(.*))?$")
_FIELD = re.compile(r"^([\w.]+): (.*)$")
# A size of more digits may not fit 64 bits.
_SIZE = re.compile(r"[0-9]{1,18}")
_NOT_DEFAULT = re.compile(r"^# (\S+) in the current tpu_comp_env has a non-default value\b")
_MESSAGE = re.compile(r"^([\w.]+) \{$")


def read_flagfile(lines: Lines) -> dict[str, str]:
    """`--flag=value` lines; a flag without a value is true. Raises DumpError."""
    flags = {}
    for number, text in enumerate(lines.text, lines.first_number):
        if not text:
            continue
        match = _FLAG.match(text)
        if match is None:
            raise DumpError(f"expected --flag=value, found {excerpt(text)}", number)
        flags[match[1]] = "true" if match[2] is None else match[2]
    return _of_program(flags)


def read_debug_options(lines: Lines) -> dict[str, str]:
    """A DebugOptions message in text form; commas join the values of a repeated flag."""
    flags: dict[str, str] = {}
    for path, value in read_text_proto(lines):
        flags[path] = f"{flags[path]},{value}" if path in flags else value
    return _of_program(flags)


def read_compilation_environment(lines: Lines) -> dict[str, str]:
    """The flags of libtpu's compilation environment that are not at their default.

    The file has every flag, at the value in force, and names those that are not at their
    default in a comment. Options that are given in the call are here and not in the flagfile.
    A message is its fields, as in `{enabled: true}`. Raises DumpError.
    """
    named = set()
    for number, text in enumerate(lines.text, lines.first_number):
        if text.startswith("#"):
            match = _NOT_DEFAULT.match(text)
            if match is None:
                raise DumpError(
                    f"expected a flag not at its default, found {excerpt(text)}", number
                )
            named.add(match[1])
    values: dict[str, list[str]] = {}
    messages = set()
    for path, value in read_text_proto(lines):
        flag, _, field = path.partition(".")
        if flag in named:
            values.setdefault(flag, []).append(f"{field}: {value}" if field else value)
            if field:
                messages.add(flag)
    return _of_program(
        {
            flag: f"{{{', '.join(found)}}}" if flag in messages else ",".join(found)
            for flag, found in values.items()
        }
    )


def _of_program(flags: dict[str, str]) -> dict[str, str]:
    """The flags that say something of the program, without what is the machine's."""
    return {
        flag: _FOLDER.sub("", value) for flag, value in flags.items() if not _IGNORED.search(flag)
    }


def read_gpu_target(lines: Lines) -> dict[str, object]:
    """The target GPU: device_kind and device_memory_bytes, None if unknown."""
    fields = dict(read_text_proto(lines))
    kind = fields.get("gpu_device_info.name") or fields.get("device_description_str")
    memory = fields.get("gpu_device_info.device_memory_size")
    if memory is not None and not _SIZE.fullmatch(memory):
        raise DumpError(f"device_memory_size is not a size in bytes: {excerpt(memory)}")
    return {
        "device_kind": kind,
        "device_memory_bytes": None if memory is None else int(memory),
    }


def read_tpu_target(lines: Lines) -> dict[str, object]:
    """The target TPU: device_kind, device_memory_bytes and topology, None if unknown.

    The file has a code name for the chip and lacks the memory's size: see `find_device`. An
    unknown chip keeps its code name.
    """
    fields = dict(read_text_proto(lines))
    version = fields.get("tpu_topology_args.version", "").removeprefix("TPU_VERSION_")
    variant = fields.get("tpu_topology_args.variant", "")
    configuration = fields.get("tpu_topology_args.chip_config_name", "")
    device = find_device(version, variant, configuration)
    chips = _bounds(fields, "tpu_topology_args.chips_per_host_bounds")
    hosts = _bounds(fields, "tpu_topology_args.host_bounds")
    return {
        "device_kind": device.kind
        if device
        else " ".join(filter(None, [version, variant])) or None,
        "device_memory_bytes": device.memory_bytes if device else None,
        "topology": f"{chips} chips a host, {hosts} hosts" if chips and hosts else None,
    }


def _bounds(fields: dict[str, str], path: str) -> str:
    return "x".join(fields[f"{path}.{axis}"] for axis in "xyz" if f"{path}.{axis}" in fields)


def read_text_proto(lines: Lines) -> list[tuple[str, str]]:
    """The scalar fields of a protocol buffer in text form: dotted path and unquoted value.

    Raises DumpError for a line that is not a field and for unbalanced braces.
    """
    fields = []
    path: list[str] = []
    for number, text in enumerate(lines.text, lines.first_number):
        stripped = text.strip()
        if match := _FIELD.match(stripped):
            fields.append((".".join([*path, match[1]]), match[2].strip('"')))
        elif match := _MESSAGE.match(stripped):
            path.append(match[1])
        elif stripped == "}" and path:
            path.pop()
        elif stripped and not stripped.startswith("#"):
            raise DumpError(f"expected 'field: value', found {excerpt(stripped)}", number)
    if path:
        raise DumpError("the file ends within a message: it is cut short", lines.last_number)
    return fields
