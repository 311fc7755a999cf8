"""Hashes that are ids."""

import hashlib


def hash_of_texts(*texts: str) -> int:
    """A hash of texts: 53 bits, the most that every program reads exactly from JSON.

    Not negative: a command line would parse a negative id as an option.
    """
    content = "\0".join(texts).encode(errors="surrogateescape")
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 11
