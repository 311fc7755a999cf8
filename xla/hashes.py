"""Hashes that are ids: of texts, or of a digest."""

import hashlib


def hash_of_texts(*texts: str) -> int:
    """A hash of texts."""
    content = "\0".join(texts).encode(errors="surrogateescape")
    return hash_of_digest(hashlib.sha256(content).digest())


def hash_of_digest(digest: bytes) -> int:
    """53 bits of a digest, the most that a number of JSON keeps in every program that reads it.

    Not negative: a command line would parse a negative id as an option.
    """
    return int.from_bytes(digest[:8], "big") >> 11
