"""Damaged copies of real dumps: what may befall a text, each by a seed that makes it again."""

import random
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from .dumps import DUMPS, copy_dump

# Dumps that are small enough to make thousands of: all layouts of files, all platforms.
SAMPLES = (
    "cpu/jax-0.10.2/module_0018*",
    "cpu/jax-0.9.0/module_0019*",
    "cpu/jax-0.4.35/module_0019*",
    "cpu/jax-0.4.23/module_0009*",
    "gpu/decode-h100/module*",
    "tpu/flash-v5e/module*",
    *(f"seeds/00{i}*" for i in range(5)),
)
NUMBERS = (0, 1, -1, 2, 7, 2**31 - 1, 2**31, 2**50, 2**63 - 1, 2**63, 2**64, 10**40, 10**5000)
_TOKENS = (
    b" ", b"  ", b":", b",", b"{", b"}", b"{}", b"(", b")", b"<", b">", b"@", b"%", b'"', b"\\",
    b"=", b"-", b"\n", b"\r", b"\t", b"\0", b"(phi)", b" @1", b"{0}", b"{1,0}", b"ENTRY ", b"ROOT ",
    b"/*index=5*/", b"S(1)", b"T(8,128)", b"\xc3\xa4", b"\xe2\x80\xa8",
)  # fmt: skip

KERNEL_METADATA = b', frontend_attributes={kernel_metadata={\n"xprof_metadata":"{\\"a\\": 1}"\n}}'

Mutation = Callable[[random.Random, bytes], bytes]


def cut(chance, text):
    return text[: chance.randrange(len(text) + 1)]


def drop_lines(chance, text):
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines) + 1)
    return b"".join(lines[:at] + lines[at + chance.choice((1, 1, 1, 2, 10)) :])


def double_line(chance, text):
    lines = text.splitlines(keepends=True)
    line = chance.choice(lines or [b"\n"])
    return b"".join([*lines, line] if chance.random() < 0.2 else _inserted(chance, lines, line))


def _inserted(chance, lines, line):
    at = lines.index(line) if line in lines else 0
    at = at if chance.random() < 0.7 else chance.randrange(len(lines) + 1)
    return [*lines[:at], line, *lines[at:]]


def swap_lines(chance, text):
    lines = text.splitlines(keepends=True)
    if len(lines) > 1:
        a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def change_number(chance, text):
    found = list(re.finditer(rb"\d+", text))
    if not found:
        return text
    match = chance.choice(found)
    number = int(match[0][:100]) + 1 if chance.random() < 0.5 else chance.choice(NUMBERS)
    digits = "9" * 5001 if number == 10**5000 else str(number)
    return text[: match.start()] + digits.encode() + text[match.end() :]


def insert_token(chance, text):
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(_TOKENS) + text[at:]


def delete_some(chance, text):
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at + chance.choice((1, 1, 2, 5, 50, 5000)) :]


def change_byte(chance, text):
    at = chance.randrange(len(text) + 1)
    return text[:at] + bytes([chance.randrange(256)]) + text[at + 1 :]


def double_byte(chance, text):
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at : at + 1] + text[at:]


def swap_bytes(chance, text):
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


def lose_brace(chance, text):
    at = chance.choice([found.start() for found in re.finditer(rb"[][(){}\"]", text)] or [0])
    return text[:at] + text[at + 1 :]


def over_lines(chance, text):
    """An instruction over several lines, as XLA prints the metadata of a kernel."""
    return _widened(chance, text, rb"\)(?=, metadata=)", KERNEL_METADATA)


def random_bytes(chance, text):
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.randbytes(chance.choice((1, 10, 3000))) + text[at:]


def windows(chance, text):
    return text.replace(b"\n", b"\r\n", chance.choice((1, 3, -1)))


def byte_order_mark(chance, text):
    mark = chance.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"))
    return mark + text


def zeros(chance, text):
    at = chance.randrange(len(text) + 1)
    return text[:at] + bytes(chance.choice((1, 4096))) + text[at:]


def empty(chance, text):
    return chance.choice((b"", b"\n", b" \n\t\r\n", b"\0"))


def another(chance, text):
    return chance.choice(list(_samples(chance.choice(SAMPLES)).values()))


def spliced(chance, text):
    other = another(chance, text)
    return cut(chance, text) + other[chance.randrange(len(other) + 1) :]


def long_name(chance, text):
    return _widened(chance, text, rb"[a-z_]{3,}[\w.]*", b"n" * 1_000_000)


def many_braces(chance, text):
    brace = chance.choice((b"{", b"}", b"(", b")", b"((((f32[", b"[", b'"', b"\\", b"{}", b", "))
    return _widened(chance, text, rb"[{}()\[\]]", brace * chance.choice((50, 5000, 1_000_000)))


def long_line(chance, text):
    return _widened(chance, text, rb"\n", chance.choice((b" ", b"x", b"1", b"0,")) * 1_000_000)


def _widened(chance, text, pattern, inserted):
    """The text with something long where the pattern is found."""
    found = [match.end() for match in re.finditer(pattern, text)] or [0]
    at = chance.choice(found)
    return text[:at] + inserted + text[at:]


_CHEAP = (
    cut, drop_lines, double_line, swap_lines, change_number, change_number, change_number,
    insert_token, insert_token, delete_some, change_byte, double_byte, swap_bytes, lose_brace,
    over_lines, random_bytes, windows, byte_order_mark,
    zeros, empty, another, spliced,
)  # fmt: skip
_DEAR = (long_name, many_braces, long_line)


@cache
def _samples(pattern: str) -> dict[str, bytes]:
    """The files of a sample dump, uncompressed."""
    with tempfile.TemporaryDirectory() as folder:
        return {path.name: path.read_bytes() for path in copy_dump(pattern, Path(folder)).iterdir()}


def damaged_dump(seed: int, folder: Path) -> str:
    """Write a damaged dump to the folder: what was done to it."""
    chance = random.Random(seed)
    pattern = chance.choice(SAMPLES)
    files = dict(_samples(pattern))
    done = [pattern]
    if len(files) > 1 and chance.random() < 0.15:
        gone = chance.choice(sorted(files))
        del files[gone]
        done.append(f"without {gone}")
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        name = chance.choice(sorted(files))
        mutate = chance.choice(_DEAR if chance.random() < 0.01 else _CHEAP)
        files[name] = mutate(chance, files[name])
        done.append(f"{mutate.__name__} in {name}")
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_bytes(text)
    return f"seed {seed}: " + ", ".join(done)


# Words of every part, to be put together in any order.
_WORDS = sorted(
    {
        word
        for pattern in ("cpu/jax-0.10.2/module_0018*", "seeds/001*")
        for path in DUMPS.glob(pattern)
        for word in re.findall(
            r"^[ A-Za-z:]+|[A-Za-z]+=|<\d+ |\(\w+|[\w.]+\{[\d,]*\}|\w+\[[\d,]*\]|.",
            path.read_bytes().decode()[:3000],
            re.MULTILINE,
        )
    }
)
_OPENINGS = (
    "",
    "BufferAssignment:\n",
    "Total bytes used: 1\n\nUsed values:\n",
    "HloLiveRange (max 1):\n",
    "HloModule m\n\n",
    "Memory Space: a (color=1)\n",
    "--flag=1\n",
)
texts = st.builds(
    lambda opening, words: (opening + "".join(words)).encode(errors="surrogatepass"),
    st.sampled_from(_OPENINGS),
    st.lists(
        st.one_of(st.sampled_from([*_WORDS, "\n", "\n  ", " "]), st.text(max_size=4)), max_size=60
    ),
)
