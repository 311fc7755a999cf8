"""All benchmarks, one table: python benchmarks/all.py DUMPS."""

from bench import measure
from growth import modules_growth, runs_growth
from hosts import hosts
from large import large
from made_programs import made_programs
from memory import memory
from nested import nested
from nights import nights
from reingest import reingest
from size import size
from startup import startup
from throughput import throughput
from views import views

ALL = (
    startup,
    large,
    reingest,
    size,
    throughput,
    hosts,
    memory,
    views,
    modules_growth,
    runs_growth,
    nights,
    nested,
    made_programs,
)

if __name__ == "__main__":
    measure(ALL)
