"""The largest numbers that ingest accepts: larger ones are refused as wrong.

Ids and times are 32-bit integers in the warehouse. Sizes are bytes; their limit lets 64 bits
hold the sum of some thousand sizes.
"""

LARGEST_ID = 2**31 - 1
LARGEST_SIZE = 2**50
# A text's lines: the largest programs known have a million.
LARGEST_LINES = 20_000_000
