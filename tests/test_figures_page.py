"""`docs/concepts/figures.md` shows what JAX, XProf and the warehouse say of four programs."""

import json
from pathlib import Path

import pytest

from .support.dumps import DATA
from .support.warehouse import rows

PAGE = (Path(__file__).parents[1] / "docs/concepts/figures.md").read_text()
FIRST = "2026-10-01"
MIB = 2**20


def shown(heading, row):
    """The cells of a table's row, below a heading of the page."""
    below = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    (line,) = (line for line in below.splitlines() if line.startswith(f"| {row} "))
    return [cell.strip().split(":")[0].replace(",", "") for cell in line.split("|")[2:-1]]


def memory_analysis(nights, workload):
    return json.loads((nights / FIRST / workload / "memory_analysis.json").read_text())


def in_warehouse(history, workload, *figures):
    query = f"""SELECT {", ".join(figures)} FROM module_memory JOIN dumps USING (module_id)
    WHERE run_id = '{FIRST}' AND workload = '{workload}' AND memory_space = 0"""
    (found,) = rows(history, query)
    return [str(each) for each in found]


def xprof(kind, workload):
    """What XProf says of a program's memory space 0, in MiB, and of all its spaces' heaps."""
    said = json.loads((DATA / "xprof.json").read_text())[kind]
    return next(spaces for name, spaces in said.items() if name.startswith(f"{workload}/"))


@pytest.mark.parametrize(
    ("workload", "kind", "heap"),
    [
        ("llama-v5e", "tpu", "0"),
        ("resnet-h100", "gpu", "0"),
        ("decode-v5e", "tpu", "1"),
        ("llama-cpu", None, None),
    ],
)
def test_jaxs_peak_is_the_sum_that_the_page_says(history, nights, workload, kind, heap):
    said = memory_analysis(nights, workload)
    peak, largest_heap, viewer, ours = shown("JAX's peak", workload)
    seen = xprof(kind, workload) if kind else {}
    (constants,) = in_warehouse(history, workload, "constant_bytes")
    outside = said["argument_size_in_bytes"] + said["output_size_in_bytes"]
    outside += int(constants) - said["alias_size_in_bytes"]
    assert int(peak) == said["peak_memory_in_bytes"] == outside + int(largest_heap)
    assert viewer == (str(round(seen["0"]["peakHeapMib"] * MIB)) if seen else "")
    assert [ours] == in_warehouse(history, workload, "peak_bytes")
    if heap == "1":
        assert int(largest_heap) == round(seen[heap]["peakHeapMib"] * MIB)
