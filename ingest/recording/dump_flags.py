"""The XLA_FLAGS of a recorded command: the user's own, and those that make XLA dump.

JAX, PyTorch/XLA and TensorFlow read XLA_FLAGS, and hand it to libtpu. Of the flags added here
`--xla_dump_include_timestamp` alone changes the keys of JAX's compilation cache (jax 0.10.2).
"""

import re
from collections.abc import Mapping
from pathlib import Path

from ...schema.errors import UsageError

_DUMP_TO = re.compile(r"""(?:^|\s)--xla_dump_to=("(?:[^"\\]|\\.)*"|'[^']*'|\S*)""")
_NEEDS_QUOTES = re.compile(r"[\s\"'\\]")
# XLA prints to stdout, or writes to a place of the build system.
_NO_FOLDERS = ("-", "sponge", "test_undeclared_outputs_dir")


def own_flags(environment: Mapping[str, str]) -> str:
    """The user's flags. XLA_FLAGS may also name a file that holds them."""
    flags = environment.get("XLA_FLAGS", "").strip()
    if not flags or flags.startswith("-"):
        return flags
    try:
        return Path(flags).read_text(errors="surrogateescape").strip()
    except OSError:
        # XLA, too, passes over a file that it cannot read.
        return ""


def own_folder(flags: str) -> Path | None:
    """The folder that the user's flags dump to, None if they do not dump.

    Raises UsageError if it is not a folder that can be read later.
    """
    found = _DUMP_TO.findall(flags)
    folder = _unquoted(found[-1]) if found else ""
    if not folder:
        return None
    if folder in _NO_FOLDERS or "://" in folder:
        raise UsageError(
            f"XLA_FLAGS dumps to {folder}, where memhouse cannot read: "
            "name a folder there, or leave --xla_dump_to out"
        )
    return Path(folder).absolute()


def with_dump_flags(flags: str, folder: Path | None, *, only: str | None, text: bool) -> str:
    """The flags, and those that make XLA dump to `folder`, or to the user's own if it is None.

    only: a regular expression of module names; text: dump texts too. The last of equal flags
    counts for XLA.
    """
    added = ["--xla_dump_hlo_as_proto=true"]
    if text:
        added.append("--xla_dump_hlo_as_text=true")
    if folder is not None:
        # The processes of a command number their modules alike, so that one would overwrite the
        # other's files. The names in the user's own folder stay as the user expects them.
        added += ["--xla_dump_include_timestamp=true", _flag("xla_dump_to", str(folder))]
    if only is not None:
        added.append(_flag("xla_dump_hlo_module_re", only))
    return " ".join([flags, *added]) if flags else " ".join(added)


def _flag(name: str, value: str) -> str:
    if not _NEEDS_QUOTES.search(value):
        return f"--{name}={value}"
    escaped = re.sub(r'(["\\])', r"\\\1", value)
    return f'--{name}="{escaped}"'


def _unquoted(value: str) -> str:
    if value[:1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value[1:-1] if value[:1] == "'" else value
