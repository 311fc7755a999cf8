"""Readers of the compiler's flags and of the target device, which XLA writes next to a dump."""

import re

from ...xla.errors import DumpError
from .lines import Lines, excerpt
from .tpu_devices import find_device

# Flags about dumps, toolchain folders, caches and profiles to write differ between runs and do not
# change the program. A profile that the compiler reads does.
_IGNORED = re.compile(
    r"(?:^|_)dumps?(?:_|$)|_profile_to$"
    r"|^(?!.*profile).*(?:_dir|_directory|_cache_file|_cache_path)$"
)
# The folder of a file depends on the machine, so that `/home/me/step.pb` becomes `step.pb`.
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
    return _program_flags(flags)


def read_debug_options(lines: Lines) -> dict[str, str]:
    """A DebugOptions message in text form; commas join the values of a repeated flag."""
    flags: dict[str, str] = {}
    for path, value in read_text_proto(lines):
        flags[path] = f"{flags[path]},{value}" if path in flags else value
    return _program_flags(flags)


def read_compilation_environment(lines: Lines) -> dict[str, str]:
    """The flags of libtpu's compilation environment that differ from their defaults.

    The file has every flag with its current value, and a comment for each that differs from its
    default. Only this file, not the flagfile, has the options of the call that compiled the
    program. The value of a message is its fields, as in `{enabled: true}`. Raises DumpError.
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
    return _program_flags(
        {
            flag: f"{{{', '.join(texts)}}}" if flag in messages else ",".join(texts)
            for flag, texts in values.items()
        }
    )


def _program_flags(flags: dict[str, str]) -> dict[str, str]:
    """The flags that may change the program, with file names instead of paths."""
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
