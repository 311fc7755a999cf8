"""All benchmarks, one table: python benchmarks/all.py DUMPS."""

from bench import measure
from jobs import jobs
from large import large
from memory import memory
from reingest import reingest
from size import size
from startup import startup
from year import year

if __name__ == "__main__":
    measure([startup, large, jobs, reingest, size, memory, year])
