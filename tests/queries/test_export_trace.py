"""Traces for Perfetto, read back and held against the warehouse."""

import sys
from collections import Counter

import pytest

import memhouse
from memhouse.report.export_trace import export_trace

from ..support.traces import read_trace
from ..support.warehouse import reading

# Not from the views that the export reads.
VALUES = """
SELECT "values".value_id, "values".allocation_index, "values".offset_bytes, "values".size_bytes,
    live_ranges.start_time, live_ranges.end_time
FROM "values"
JOIN live_ranges USING (module_id, value_id)
JOIN allocations USING (module_id, allocation_index)
WHERE module_id = $1 AND allocations.is_temp AND allocations.memory_space = $2
"""
FIXED = """
SELECT allocation_index, size_bytes
FROM allocations
WHERE module_id = $1 AND memory_space = $2 AND NOT is_temp AND NOT is_thread_local
"""
KEYS = ("value_id", "allocation_index", "offset_bytes", "size_bytes")
LLAMA = "llama-v5e/jit_train_step"


@pytest.fixture(scope="module")
def store(filled):
    with reading(filled) as opened:
        yield opened


@pytest.fixture(scope="module")
def traces(store, tmp_path_factory):
    """The trace of each module that has a schedule, read back: by module_id."""
    folder = tmp_path_factory.mktemp("traces")
    found = store.rows("SELECT DISTINCT module_id, schedule_length FROM modules").to_pylist()
    read = {}
    for row in found:
        file = folder / f"{row['module_id']}.pftrace"
        done = export_trace(store, row["module_id"], file)
        assert done.path == file
        read[row["module_id"]] = (done, row["schedule_length"], read_trace(file))
    assert len(read) > 20
    assert any(done.values > 300 and done.spaces > 3 for done, _, _ in read.values())
    return read


@pytest.fixture(scope="module")
def spaces(store, traces):
    """Each memory space of each trace: its row, the schedule's length, its own track and more."""
    found = []
    for module_id, (_, length, tracks) in traces.items():
        for row in store.rows(
            "SELECT module_id, memory_space, peak_bytes, peak_time FROM module_memory"
            " WHERE module_id = $1",
            [module_id],
        ).to_pylist():
            found.append((row, length, *space_tracks(tracks, row["memory_space"])))
    return found


def space_tracks(tracks, space):
    """The track of a memory space, and those below it."""
    (title,) = {
        track.path[0] for track in tracks if f"memory space {space}" in track.path[0].split(" (")[0]
    }
    first, *below = (track for track in tracks if track.path[0] == title)
    return first, below


def at_each_time(steps, length):
    """The values of a counter, time by time."""
    found, steps = [0] * length, sorted(steps)
    for (start, value), (end, _) in zip(steps, [*steps[1:], (length, 0)], strict=True):
        found[start:end] = [value] * (end - start)
    return found


def test_the_counter_is_the_timeline(store, spaces):
    for space, length, root, _ in spaces:
        expected = [0] * length
        for row in store.rows(
            "SELECT start_time, end_time, occupied_bytes FROM timeline_by_space AS timeline"
            " WHERE module_id = $1 AND memory_space = $2",
            [space["module_id"], space["memory_space"]],
        ).to_pylist():
            life = slice(row["start_time"], row["end_time"] + 1)
            expected[life] = [row["occupied_bytes"]] * (row["end_time"] + 1 - row["start_time"])
        found = at_each_time(root.counts, length)
        assert root.is_counter
        assert found == expected
        if space["peak_bytes"] is not None:
            assert max(found) == found[space["peak_time"]] == space["peak_bytes"]


def test_the_counters_below_add_up(spaces):
    """Arguments, outputs, constants and temps are what is occupied; so are the passes."""
    summed = Counter()
    for _, length, root, below in spaces:
        counters = [track for track in below if track.is_counter]
        passes = [track for track in counters if track.path[1] == "by pass"]
        categories = [track for track in counters if len(track.path) == 2]
        assert len(counters) == len(passes) + len(categories)
        whole = at_each_time(root.counts, length)
        for name, parts in (("categories", categories), ("passes", passes)):
            if parts:
                values = [at_each_time(track.counts, length) for track in parts]
                assert [sum(each) for each in zip(*values, strict=True)] == whole
                summed[name] += 1
    assert min(summed["categories"], summed["passes"]) > 10


def test_the_slices_are_the_live_ranges(store, traces, spaces):
    shown = Counter()
    for space, _, _, below in spaces:
        parameters = [space["module_id"], space["memory_space"]]
        fixed = {
            row["allocation_index"]: row["size_bytes"]
            for row in store.rows(FIXED, parameters).to_pylist()
        }
        drawn, temps = {}, Counter()
        summed = summed_bytes = 0
        for found in (each for track in below for each in track.slices):
            if "count" in found.said:
                summed += found.said["count"]
                summed_bytes += found.said["size_bytes"]
            elif found.said["allocation_index"] in fixed:
                drawn[found.said["allocation_index"]] = found.said["size_bytes"]
            else:
                temps[(*(found.said[key] for key in KEYS), found.start, found.end)] += 1
        expected = store.rows(VALUES, parameters).to_pylist()
        assert temps == Counter(tuple(row.values()) for row in expected)
        assert drawn.items() <= fixed.items()
        assert len(drawn) + summed == len(fixed)
        assert sum(drawn.values()) + summed_bytes == sum(fixed.values())
        shown[space["module_id"]] += len(fixed) + len(expected)
    assert +shown == +Counter({module: done.values for module, (done, _, _) in traces.items()})


def test_the_instructions_are_the_schedule(store, traces):
    for module_id, (_, _, tracks) in traces.items():
        scheduled = store.rows(
            "SELECT schedule_time, COALESCE(opcode, instruction) AS name, pass FROM instructions"
            " WHERE module_id = $1 AND schedule_time IS NOT NULL ORDER BY 1",
            [module_id],
        ).to_pylist()
        steps = [track for track in tracks if track.path[0] == "instructions"]
        if not scheduled:
            assert steps == []
            continue
        passes, one_by_one = steps
        assert [(found.start, found.end, found.name) for found in one_by_one.slices] == [
            (row["schedule_time"], row["schedule_time"], row["name"]) for row in scheduled
        ]
        of_time = {
            time: found.name
            for found in passes.slices
            for time in range(found.start, found.end + 1)
        }
        assert all(of_time.get(row["schedule_time"]) == row["pass"] for row in scheduled)


def test_a_trace_names_spaces_peaks_and_values(store, tmp_path):
    files = [tmp_path / f"{name}.pftrace" for name in ("a", "b")]
    for file in files:
        export_trace(store, LLAMA, file)
    # The same module is the same file.
    assert files[0].read_bytes() == files[1].read_bytes()
    llama = read_trace(files[0])
    assert [track.name for track in llama if len(track.path) == 1] == [
        "instructions",
        "memory space 0 (HBM)",
        "memory space 1 (vmem)",
        "memory space 2 (smem)",
        "memory space 6 (color_6)",
    ]
    root, hbm = space_tracks(llama, 0)
    (peak,) = [track for track in hbm if track.name == "peak"]
    ((time, said),) = peak.instants
    assert said == "peak 306.98 MiB at all-reduce.77"
    assert dict(root.counts)[time] == 321896448
    (found,) = [
        each for track in hbm for each in track.slices if each.said.get("value") == "all-gather.19"
    ]
    assert (found.name, found.start, found.end) == ("dot_general bf16[8,1024,4096]", 303, 914)
    assert found.said == {
        "size": "64.00 MiB",
        "size_bytes": 64 << 20,
        "padding_bytes": 0,
        "shape": "bf16[8,1024,4096]{2,1,0:T(8,128)(2,1)}",
        "value": "all-gather.19",
        "opcode": "all-gather",
        "op_name": "jit(train_step)/transpose(jvp())/dot_general",
        "source": "/train/zoo/zoo.py:43",
        "pass": "backward",
        "role": "gradient",
        "readers": 13,
        "last_use_time": 893,
        "allocation_index": 218,
        "offset_bytes": 30720000,
        "value_id": 2587,
    }
    # Small values have lanes of their own.
    temps = [track for track in hbm if track.path[1:2] == ("temps",)]
    (small,) = [track for track in temps if "values below" in track.name]
    inside = [each for track in temps if small.name in track.path for each in track.slices]
    assert small.name.startswith(f"{len(inside)} values")
    assert max(each.said["size_bytes"] for each in inside) < 321896448 / 1000


def test_an_estimate_says_so(store, tmp_path):
    export_trace(store, "jit_conv_general_dilated", tmp_path / "x.pftrace")
    root, (peak, *_) = space_tracks(read_trace(tmp_path / "x.pftrace"), 0)
    assert root.name == "≈ memory space 0 (memory)"
    assert peak.instants[0][1].startswith("peak ≈ 640.31 MiB")


def test_without_the_package_it_says_what_to_install(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    with pytest.raises(memhouse.MissingPackageError, match=r"memhouse\[perfetto\]"):
        export_trace(store, LLAMA, tmp_path / "x.pftrace")
    assert list(tmp_path.iterdir()) == []
