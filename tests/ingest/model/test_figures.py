"""The figures, against what JAX and XProf say of the same programs, and against their meaning."""

import json

import pytest

from ...support.dumps import DATA, DUMPS

ANALYSES = sorted(DUMPS.rglob("memory_analysis.json"))
XPROF = {
    (run, module): spaces["0"]["peakHeapMib"] * 2**20
    for run, modules in json.loads((DATA / "xprof.json").read_text()).items()
    for module, spaces in modules.items()
    if list((DUMPS / run).glob(f"{module}*"))
}


def select(warehouse, query, *parameters):
    """Rows as dicts."""
    return warehouse.sql(query, params=list(parameters)).to_arrow_table().to_pylist()


def test_figures_are_those_of_jax(warehouse):
    assert len(ANALYSES) >= 6
    failures = []
    for path in ANALYSES:
        run, workload = path.relative_to(DUMPS).parts[:2]
        said = json.loads(path.read_text())
        (found,) = select(
            warehouse,
            "SELECT SUM(argument_bytes) AS argument, SUM(output_bytes) AS output, "
            "SUM(alias_bytes) AS alias, SUM(temp_bytes) AS temp FROM peaks "
            "WHERE run_id = $1 AND workload = $2",
            run,
            workload,
        )
        # TPU adds a share to temp that is not in the dump.
        for kind in ("argument", "output", "alias", *(["temp"] if run != "tpu" else [])):
            if found[kind] != said[f"{kind}_size_in_bytes"]:
                failures.append((run, workload, kind, found[kind]))
    assert failures == []


def test_the_peak_is_that_of_xprof(warehouse):
    assert len(XPROF) >= 8
    found = {
        (row["run_id"], row["workload"], row["module_number"]): row["peak_bytes"]
        for row in select(
            warehouse,
            "SELECT dumps.run_id, dumps.workload, module_number, peak_bytes FROM peaks_by_space "
            "INNER JOIN dumps USING (dump_id) WHERE memory_space = 0",
        )
    }
    for (run, module), peak in XPROF.items():
        workload, name = module.split("/")
        number = int(name.split(".")[0].removeprefix("module_"))
        assert found[run, workload, number] == pytest.approx(peak, rel=0.001), (run, module)


def test_resnet_is_mostly_padding(warehouse):
    (found,) = select(
        warehouse,
        "SELECT peak_bytes, padding_bytes FROM peaks_by_space AS peaks "
        "WHERE workload = 'resnet-v5e' AND memory_space = 0",
    )
    assert round(found["peak_bytes"] / 2**20, 1) == 145.3
    assert round((found["peak_bytes"] - found["padding_bytes"]) / 2**20, 1) == 62.6


def test_all_spaces_add_up_to_total_bytes_used(warehouse):
    assert not select(
        warehouse,
        "SELECT module_id FROM module_memory INNER JOIN modules USING (module_id) "
        "GROUP BY module_id, reported_total_bytes "
        "HAVING SUM(total_bytes) <> reported_total_bytes",
    )


def test_no_peak_is_above_its_total(warehouse):
    found = select(warehouse, "SELECT * FROM peaks_by_space WHERE origin <> 'estimated'")
    assert len(found) > 30
    for row in found:
        room = row["total_bytes"] - row["thread_local_bytes"]
        assert row["reserved_bytes"] == room
        assert 0 <= row["peak_bytes"] <= room
        assert row["fragmentation_bytes"] == room - row["peak_bytes"]
        assert 0 <= row["padding_bytes"] <= row["peak_bytes"]
        assert 0 <= row["peak_time"] < row["schedule_length"]
        assert row["peak_instruction"]


def test_seed_002_by_hand(warehouse):
    # One argument of 20 MiB, four results of 5 MiB, an index table of 32 bytes; no temp.
    (found,) = select(warehouse, "SELECT * FROM peaks WHERE starts_with(module_name, '002')")
    expected = {
        "total_bytes": 41943072,
        "argument_bytes": 20971520,
        "output_bytes": 20971552,
        "alias_bytes": 0,
        "constant_bytes": 0,
        "temp_bytes": 0,
        "peak_bytes": 41943072,
        "peak_time": 0,
        "fragmentation_bytes": 0,
        "fragmentation": None,
        "padding_bytes": 0,
    }
    assert {figure: found[figure] for figure in expected} == expected


def test_seed_004_by_hand(warehouse):
    (found,) = select(warehouse, "SELECT * FROM peaks WHERE starts_with(module_name, '004')")
    # 6 thread-local bytes x 4; at 17 input_fusion_scatter, cublas-gemm.5 and .9, all-gather.
    throughout = 8192 + 4096 + 4096 + 1024 + 24 + 4 + 4
    assert found["thread_local_bytes"] == 24
    assert found["temp_bytes"] == 13456
    assert found["alias_bytes"] == 4096 + 1024 + 4
    assert found["peak_time"] == 17
    assert found["peak_bytes"] == throughout + 8192 + 4096 + 1024 + 64
    assert found["fragmentation_bytes"] == 13456 - (8192 + 4096 + 1024 + 64)


def extents_by_module(warehouse):
    """Of each module and space: what is occupied throughout, and its temp values' extents."""
    throughout = select(
        warehouse,
        "SELECT module_id, memory_space, COALESCE(SUM(size_bytes) FILTER "
        "(WHERE NOT is_temp AND NOT is_thread_local), 0) AS bytes FROM allocations GROUP BY ALL",
    )
    values = select(
        warehouse,
        "SELECT v.module_id, a.memory_space, v.allocation_index, offset_bytes, v.size_bytes, "
        "logical_bytes, start_time, end_time "
        'FROM "values" AS v INNER JOIN live_ranges USING (module_id, value_id) '
        "INNER JOIN allocations AS a USING (module_id, allocation_index) WHERE a.is_temp",
    )
    found = {(row["module_id"], row["memory_space"]): (int(row["bytes"]), []) for row in throughout}
    for row in values:
        found[row["module_id"], row["memory_space"]][1].append(row)
    return found


def union(extents):
    """The bytes that the extents cover."""
    covered, at = 0, (-1, 0)
    for row in sorted(extents, key=lambda row: (row["allocation_index"], row["offset_bytes"])):
        low = (row["allocation_index"], row["offset_bytes"])
        high = (row["allocation_index"], row["offset_bytes"] + row["size_bytes"])
        if high > at:
            covered += high[1] - max(low, at)[1]
            at = high
    return covered


def test_occupancy_is_the_union_of_what_is_live(warehouse):
    extents = extents_by_module(warehouse)
    steps = select(warehouse, "SELECT * FROM occupancy")
    # All of the small modules, and some hundred steps of the large ones.
    chosen = [step for step in steps if len(extents[key(step)][1]) < 50] + steps[::20]
    assert len(chosen) > 300
    for step in chosen:
        throughout, values = extents[key(step)]
        live = [v for v in values if v["start_time"] <= step["start_time"] <= v["end_time"]]
        assert step["occupied_bytes"] == throughout + union(live)


def key(row):
    return row["module_id"], row["memory_space"]


def test_live_bytes_is_the_sum_of_what_is_live(warehouse):
    assert not select(
        warehouse,
        "SELECT o.module_id, o.start_time, o.live_bytes, COALESCE(SUM(v.size_bytes), 0) AS live "
        "FROM occupancy AS o "
        "LEFT JOIN (SELECT v.*, a.memory_space AS number, start_time, end_time "
        '  FROM "values" AS v INNER JOIN live_ranges USING (module_id, value_id) '
        "  INNER JOIN allocations AS a USING (module_id, allocation_index)) AS v "
        "ON v.module_id = o.module_id AND v.number = o.memory_space "
        "AND o.start_time BETWEEN v.start_time AND v.end_time "
        "GROUP BY o.module_id, o.memory_space, o.start_time, o.live_bytes "
        "HAVING live <> live_bytes",
    )


def test_occupancy_has_a_row_only_where_it_changes(warehouse):
    assert not select(
        warehouse,
        "SELECT * FROM occupancy QUALIFY (live_bytes, occupied_bytes) = "
        "LAG((live_bytes, occupied_bytes)) OVER "
        "(PARTITION BY module_id, memory_space ORDER BY start_time)",
    )
    firsts = select(
        warehouse, "SELECT MIN(start_time) AS t FROM occupancy GROUP BY module_id, memory_space"
    )
    assert {row["t"] for row in firsts} == {0}
