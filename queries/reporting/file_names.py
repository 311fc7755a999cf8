"""The files of reports: names made of names from dumps, and which files are reports."""

import re
from hashlib import sha256
from pathlib import Path

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
# Names that Windows keeps for devices, with any ending.
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_-]*")
_LONGEST = 100


def file_name(*parts: str) -> str:
    """A name without its ending for a file of one report: `llama-v5e.jit_train_step`.

    It has only letters, digits, dots, `_` and `-`, and can be used on every system.
    """
    cleaned = [_OTHER.sub("_", part).strip(".-") for part in parts]
    name = ".".join(part for part in cleaned if part)[:_LONGEST].rstrip(".")
    return f"_{name}" if not name or _DEVICE.match(name) else name


def page_name(first: str, *rest: str) -> str:
    """A name without its ending for a file among many: other parts make another name.

    This also holds on disks that take `A` for `a`: a digest follows wherever characters were
    replaced or capitals occur. Only the first part may contain dots without one. The name depends
    on the parts alone, so links to the file stay valid.
    """
    name = file_name(first, *rest)
    is_plain = all(_PLAIN.fullmatch(part) for part in (first.replace(".", "_"), *rest))
    if is_plain and name == ".".join((first, *rest)):
        return name
    return f"{name.lower()}-{_digest(repr((first, *rest)))}"


def is_report(path: Path) -> bool:
    """Whether a file is a page that memhouse wrote, or an empty file."""
    try:
        with path.open("rb") as file:
            start = file.read(1000)
    except OSError:
        return False
    return not start or b'<meta name="generator" content="memhouse">' in start


def told_apart(names: dict[int, str]) -> dict[int, str]:
    """The names by id; those that several ids have are followed by a digest of the id."""
    given = list(names.values())
    return {
        key: name if given.count(name) == 1 else f"{name}-{_digest(str(key))}"
        for key, name in names.items()
    }


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
