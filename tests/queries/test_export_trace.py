"""Traces for Perfetto, read back and held against the warehouse."""

import sys
from collections import Counter

import pytest

import memhouse
from memhouse.queries.export_trace import export_trace

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
    return read


def space_tracks(tracks, space):
    """The tracks of a memory space, the first is its own."""
    (title,) = {
        track.path[0] for track in tracks if f"memory space {space}" in track.path[0].split(" (")[0]
    }
    return [track for track in tracks if track.path[0] == title]


def spaces_of(store, module_id):
    return store.rows(
        "SELECT memory_space, peak_bytes, peak_time FROM module_memory WHERE module_id = $1",
        [module_id],
    ).to_pylist()


def at_each_time(steps, length):
    """The values of a counter, time by time."""
    found, steps = [0] * length, sorted(steps)
    for (start, value), (end, _) in zip(steps, [*steps[1:], (length, 0)], strict=True):
        found[start:end] = [value] * (end - start)
    return found


def test_every_dump_has_a_trace(traces):
    assert len(traces) > 20
    assert any(done.values > 300 and done.spaces > 3 for done, _, _ in traces.values())


def test_the_counter_is_the_timeline(store, traces):
    for module_id, (_, length, tracks) in traces.items():
        for space in spaces_of(store, module_id):
            root = space_tracks(tracks, space["memory_space"])[0]
            stretches = store.rows(
                "SELECT start_time, end_time, occupied_bytes FROM timeline"
                " WHERE module_id = $1 AND memory_space = $2",
                [module_id, space["memory_space"]],
            ).to_pylist()
            expected = [0] * length
            for row in stretches:
                life = slice(row["start_time"], row["end_time"] + 1)
                expected[life] = [row["occupied_bytes"]] * (row["end_time"] + 1 - row["start_time"])
            found = at_each_time(root.counts, length)
            assert root.is_counter
            assert found == expected
            if space["peak_bytes"] is not None:
                assert max(found) == found[space["peak_time"]] == space["peak_bytes"]


def test_the_counters_below_add_up(store, traces):
    """Arguments, outputs, constants and temps are what is occupied; so are the passes."""
    summed = Counter()
    for module_id, (_, length, tracks) in traces.items():
        for space in spaces_of(store, module_id):
            root, *below = space_tracks(tracks, space["memory_space"])
            counters = [track for track in below if track.is_counter]
            passes = [track for track in counters if track.path[1] == "by pass"]
            categories = [track for track in counters if len(track.path) == 2]
            assert len(counters) == len(passes) + len(categories)
            for parts in filter(None, (categories, passes)):
                total = [0] * length
                for track in parts:
                    values = at_each_time(track.counts, length)
                    total = [a + b for a, b in zip(total, values, strict=True)]
                assert total == at_each_time(root.counts, length)
                summed["passes" if parts is passes else "categories"] += 1
    assert summed["categories"] > 10
    assert summed["passes"] > 10


def test_the_slices_are_the_live_ranges(store, traces):
    for module_id, (done, _, tracks) in traces.items():
        shown = 0
        for space in spaces_of(store, module_id):
            below = space_tracks(tracks, space["memory_space"])[1:]
            slices = [found for track in below for found in track.slices]
            fixed = {
                row["allocation_index"]: row["size_bytes"]
                for row in store.rows(FIXED, [module_id, space["memory_space"]]).to_pylist()
            }
            drawn = {}
            temps = Counter()
            summed = summed_bytes = 0
            for found in slices:
                if "count" in found.said:
                    summed += found.said["count"]
                    summed_bytes += found.said["size_bytes"]
                elif found.said["allocation_index"] in fixed:
                    drawn[found.said["allocation_index"]] = found.said["size_bytes"]
                else:
                    row = tuple(found.said[key] for key in KEYS)
                    temps[(*row, found.start, found.end)] += 1
            expected = store.rows(VALUES, [module_id, space["memory_space"]]).to_pylist()
            assert temps == Counter(tuple(row.values()) for row in expected)
            assert drawn.items() <= fixed.items()
            assert len(drawn) + summed == len(fixed)
            assert sum(drawn.values()) + summed_bytes == sum(fixed.values())
            shown += len(fixed) + len(expected)
        assert shown == done.values


def test_the_slices_of_a_time_fill_what_is_occupied(store, traces):
    """The union of their addresses is the counter, at every change of the counter."""
    for module_id, (_, _, tracks) in traces.items():
        for space in spaces_of(store, module_id):
            root, *below = space_tracks(tracks, space["memory_space"])
            slices = [found for track in below for found in track.slices]
            for time, occupied in root.counts:
                assert filled_bytes(slices, time) == occupied


def filled_bytes(slices, time):
    total = 0
    extents = []
    for found in slices:
        if not found.start <= time <= found.end:
            continue
        if "count" in found.said:
            total += found.said["size_bytes"]
        else:
            start = found.said["offset_bytes"]
            extents.append(
                (found.said["allocation_index"], start, start + found.said["size_bytes"])
            )
    reached = (-1, 0)
    for allocation, start, end in sorted(extents):
        covered = reached[1] if reached[0] == allocation else 0
        total += max(end - max(start, covered), 0)
        reached = (allocation, max(end, covered))
    return total


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


@pytest.fixture(scope="module")
def llama(store, tmp_path_factory):
    file = tmp_path_factory.mktemp("llama") / "llama.pftrace"
    export_trace(store, "llama-v5e/jit_train_step", file)
    return read_trace(file)


def test_memory_spaces_have_their_names_and_peaks(llama):
    assert [track.name for track in llama if len(track.path) == 1] == [
        "instructions",
        "memory space 0 (HBM)",
        "memory space 1 (vmem)",
        "memory space 2 (smem)",
        "memory space 6 (color_6)",
    ]
    hbm = space_tracks(llama, 0)
    (peak,) = [track for track in hbm if track.name == "peak"]
    ((time, said),) = peak.instants
    assert said == "peak 306.98 MiB at all-reduce.77"
    assert dict(hbm[0].counts)[time] == 321896448


def test_a_slice_says_what_the_value_is(llama):
    (found,) = [
        found
        for track in space_tracks(llama, 0)
        for found in track.slices
        if found.said.get("value") == "all-gather.19"
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


def test_small_values_have_lanes_of_their_own(llama):
    temps = [track for track in llama if track.path[1:2] == ("temps",)]
    (small,) = [track for track in temps if "values below" in track.name]
    assert small.name == "332 values below 314.35 KiB"
    inside = [found for track in temps if small.name in track.path for found in track.slices]
    assert len(inside) == 332
    assert max(found.said["size_bytes"] for found in inside) < 321897


def test_an_estimate_says_so(store, tmp_path):
    export_trace(store, "jit_conv_general_dilated", tmp_path / "x.pftrace")
    root, peak, *_ = space_tracks(read_trace(tmp_path / "x.pftrace"), 0)
    assert root.name == "≈ memory space 0 (memory)"
    assert peak.instants[0][1].startswith("peak ≈ 640.31 MiB")


def test_of_a_run(history, tmp_path):
    peaks = {}
    for run in ("2026-10-07", "2026-10-08"):
        with memhouse.open(history, read_only=True) as warehouse:
            done = warehouse.export_trace("llama-v5e", tmp_path / "x.pftrace", run=run)
            expected = warehouse.peaks(run=run, workload="llama-v5e").df()
        root = space_tracks(read_trace(done.path), 0)[0]
        peaks[run] = max(value for _, value in root.counts)
        assert peaks[run] in expected["peak_bytes"].tolist()
    assert peaks["2026-10-07"] != peaks["2026-10-08"]


def test_the_same_module_is_the_same_file(store, tmp_path):
    for name in ("a", "b"):
        export_trace(store, "llama-v5e/jit_train_step", tmp_path / f"{name}.pftrace")
    assert (tmp_path / "a.pftrace").read_bytes() == (tmp_path / "b.pftrace").read_bytes()


def test_without_the_package_it_says_what_to_install(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    with pytest.raises(memhouse.MissingPackageError, match=r"pip install 'memhouse\[perfetto\]'"):
        export_trace(store, "llama-v5e/jit_train_step", tmp_path / "x.pftrace")
    assert list(tmp_path.iterdir()) == []
