"""How often the tests that try at random try: little in each change, more in `make test-random`."""

import os


def rounds(usual: int) -> int:
    """`usual`, times the whole number in MEMHOUSE_TEST_ROUNDS."""
    return usual * int(os.environ.get("MEMHOUSE_TEST_ROUNDS", "1"))
