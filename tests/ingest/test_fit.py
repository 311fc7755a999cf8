"""Fit: the search against brute force, and one real program from the question to the answer."""

import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memhouse
from memhouse.cli.render.chart import print_policies
from memhouse.compile import fit_worker
from memhouse.compile.fit import Fit, Point
from memhouse.compile.fit_answer import answer
from memhouse.compile.fit_axes import Asked
from memhouse.compile.fit_search import Sized, bracket, next_size
from memhouse.compile.fitted import Fitted

from ..support.command import run_memhouse

PROGRAM = """
import functools
import jax, jax.numpy as jnp

def build(devices, *, batch, how="plain"):
    print("noise on stdout")
    if how == "raises":
        raise ValueError("no such layer")
    if how == "ends":
        import os; os._exit(3)
    if how == "never ends":
        while True: pass
    if how == "wrong":
        return 42
    if how == "misses":
        import no_such_package
    if how == "is killed":
        import os; os.kill(os.getpid(), 11)
    if how == "wants 100 GB":
        held = [bytearray(1 << 28) for _ in range(400)]
    if how == "leaves a child":
        import subprocess; subprocess.Popen(["sleep", "4242"])

    def step(w, x):
        if how == "loops":
            return jax.lax.while_loop(lambda w: w.sum() < 9, lambda w: w @ w, w)
        return w - jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w)

    shape = jax.ShapeDtypeStruct
    if how in ("replicated", "shared"):
        mesh = jax.sharding.Mesh(devices, ("x",))
        shape = functools.partial(shape, sharding=jax.NamedSharding(mesh, jax.P()))
    if how == "shared":
        placed = {"in_specs": (jax.P(), jax.P("x")), "out_specs": jax.P()}
        step = jax.shard_map(step, mesh=mesh, check_vma=False, **placed)
    return jax.jit(step), (shape((64, 64), "float32"), shape((batch, 64), "float32"))
"""


def search(total, sizes, capacity, tolerance=0.0):
    """The sizes that are tried, in order."""
    tried = []
    while (size := next_size(tried, sizes, capacity, tolerance=tolerance)) is not None:
        assert size in sizes
        assert size not in {point.size for point in tried}
        tried.append(Sized(size, total(size), total(size) <= capacity))
    return tried


sizes = st.builds(
    lambda first, count, step: range(first, first + count * step, step),
    st.integers(1, 64),
    st.integers(1, 3000),
    st.sampled_from([1, 8, 128]),
)


@settings(max_examples=300, deadline=None)
@given(
    sizes,
    st.integers(0, 10**9),
    st.integers(1, 10**8),
    st.sampled_from([0, 0, 1e-4, 1e-2, 1]),
    st.integers(1, 99),
    st.integers(0, 50),
)
def test_the_edge_is_that_of_brute_force(sizes, fixed, each, bend, percent, stairs):
    """For programs that grow in lines, parabolas and stairs: few compiles, both sides proved."""

    def total(size):
        steps = stairs * each * (size // 37)
        return int(fixed + each * size + bend * each * size * size / sizes[-1] + steps)

    capacity = fixed + (total(sizes[-1]) - fixed) * percent // 100
    tried = search(total, sizes, capacity)
    lower, upper = bracket(tried)
    assert lower == max((size for size in sizes if total(size) <= capacity), default=0)
    assert upper is None or upper - lower <= sizes.step or lower == 0
    assert len(tried) <= (8 if not stairs else 4 + 2 * len(sizes).bit_length())


@given(st.integers(200, 2000), st.integers(0, 12))
def test_the_knee_is_found_near_where_the_law_says(capacity, percent):
    """XLA recomputes from a size on whose bytes, without that, would come near the capacity."""
    knee, sizes = capacity * (100 - percent) // 100, range(1, 4097)

    def as_knee(size):
        return Sized(size, 10 * size if size <= knee else None, size <= knee)

    tried = [as_knee(size) for size in (1, 4096, capacity + capacity // 10, capacity // 2)]
    begun = len(tried)
    share, tolerance = 0.945, 1 / 32
    while (
        size := next_size(tried, sizes, int(10 * capacity * share), tolerance=tolerance)
    ) is not None:
        tried.append(as_knee(size))
    lower, upper = bracket(tried)
    assert lower <= knee < upper
    assert upper - lower <= max(1, tolerance * upper)
    assert len(tried) - begun <= 7


# Programs as libtpu compiled them: the capacity, and what sizes take, in MiB; from a size on, the
# work of a sample; the edge, the knee and how many points find them.
LOGGED = {
    "an MLP that recomputes, v5e": (
        16126,
        range(1024, (1 << 21) + 1, 1024),
        {1024: 197.2, 407552: 15284.0, 408576: 14524.4, 453632: 16108.4, 2097152: 73888.4},
        {1024: 1.0, 408576: 1.0345, 867328: 1.1724},
        (453632, 402432, 7),
    ),
    "a transformer that recomputes, v5e": (
        16126,
        range(8, 4097, 8),
        {
            8: 1290.7,
            24: 3891.4,
            96: 14130.7,
            104: 14468.1,
            112: 15629.6,
            120: 19558.1,
            4096: 598928,
        },
        {8: 1.0, 104: 1.0739, 112: 1.0925, 120: 1.0185, 4096: 1.3331},
        (112, 96, 7),
    ),
    "experts that ask for more where XLA recomputes, v5e": (
        16126,
        range(256, (1 << 19) + 1, 256),
        {256: 34.2, 177664: 15300.2, 177920: 16712.2, 187392: 17600.2, 524288: 45088.2},
        {256: 1.0, 177920: 1.2},
        (177664, 177664, 6),
    ),
    "a stair of 250 MiB, v5e": (
        16126,
        range(16, 16385, 16),
        {16: 3.6, 7744: 15878.4, 7808: 15885.5, 7824: 16133.5, 7920: 16144.1, 16384: 33330.7},
        {16: 1.0, 16384: 1.0313},
        (7808, 7808, 9),
    ),
}


@pytest.mark.parametrize("name", LOGGED)
def test_what_was_compiled_is_searched_again(name, monkeypatch):
    """The points of real programs: the edge, the knee to 1/32, and few compiles."""
    capacity, sizes, totals, works, (edge, knee, most) = LOGGED[name]
    fit = Fit(Asked("t.py", "build", {"batch": sizes}, ["v5e:2x2"]), None, tool_version="0")

    def compiled(_, topology, arguments):
        size = arguments["batch"]
        total = np.interp(size, list(totals), list(totals.values()))
        work = works[max(first for first in works if first <= size)]
        outcome = "fits" if total <= capacity else "refused"
        figures = int(total * 1e6), 0, int(capacity * 1e6), int(size * work * 1e6)
        fit.points.append(Point(topology, arguments, outcome, "r", *figures))
        return fit.points[-1]

    monkeypatch.setattr(fit, "_try", compiled)
    fit._search(None, "v5e:2x2", {})
    rows = answer(fit.asked, fit.points).table.to_pylist()
    answers = {row["answer"]: row["batch"] for row in rows}
    assert answers.get("largest", answers["knee"]) == edge
    assert abs(answers["knee"] - knee) <= knee / 32
    assert len(fit.points) <= most


def test_a_size_that_fits_above_one_that_does_not_is_kept():
    """Totals are not monotone: a workspace may vanish in larger programs."""
    tried = [Sized(1, 10, True), Sized(512, 900, False), Sized(64, 130, False), Sized(80, 90, True)]
    assert bracket(tried) == (80, 512)
    assert next_size(tried, range(1, 513), 100) > 80


def test_policies_are_compared_in_a_chart(capfd):
    """By the memory and the work of a sample; sizes far below the edge say nothing of the work."""
    asked = Asked("t.py", "build", {"batch": range(1, 999), "remat": ["none", "full"]}, ["cpu"])

    def point(batch, remat, reserved_bytes, flops, outcome="fits"):
        arguments = {"batch": batch, "remat": remat}
        return Point("cpu", arguments, outcome, "r", reserved_bytes, 0, 1000, flops, seconds=1.0)

    points = [
        point(1, "none", 10, 1),
        point(20, "none", 400, 2000),
        point(80, "none", 800, 8000),
        point(90, "none", 1100, 9000, "too large"),
        point(200, "full", 1000, 25000),
    ]
    said = answer(asked, points)
    assert said.policies == {
        "cpu remat=none": [(20, 20.0, 0.0), (80, 10.0, 0.0)],
        "cpu remat=full": [(200, 5.0, 25.0)],
    }
    print_policies(said.policies, said.searched)
    drawn = capfd.readouterr().out
    assert drawn.count("●") == 2 + 1
    assert "▲ cpu remat=full: batch 200" in drawn
    pytest.importorskip("bokeh")
    page = Fitted("t:build", *said).report()
    assert [chart.title for chart in page.charts()] == ["Memory and work"]
    assert "batch 80 with remat=none" in page.html()
    # Where all take the same work, there is nothing to compare.
    assert not answer(asked, points[:4]).policies


@pytest.fixture
def program(tmp_path, monkeypatch):
    pytest.importorskip("jax", reason="jax is not installed: it is in the dev extra")
    # The worker is of this environment, whichever is active.
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    return "train.py:build"


def test_a_program_from_the_question_to_the_answer(program, monkeypatch):
    """The edge is proved from both sides; a rerun compiles nothing; the points are no series."""
    asked = {"batch": range(8, 4097, 8), "memory": "400KiB"}
    found = memhouse.fit(program, **asked)
    knee, *others = found.rows.arrow().to_pylist()
    assert knee["answer"] == "knee"
    outcomes = {row["batch"]: row["outcome"] for row in others}
    assert outcomes[knee["batch"] + 8] == "too large"
    # Two products of 64 by 64 a sample: forward, and of the weights' gradient.
    assert knee["gflops"] == pytest.approx(2 * 2 * 64 * 64 * knee["batch"] / 1e9)
    assert len(others) <= 5
    again = memhouse.fit(program, **asked).rows.arrow().to_pylist()
    assert not any(row["is_new"] for row in again)
    assert [row["run"] for row in again] == [row["run"] for row in (knee, *others)]
    with memhouse.open("memhouse.duckdb", read_only=True) as warehouse:
        series = warehouse.sql("SELECT COUNT(*) AS n FROM history GROUP BY series_id").arrow()
        assert set(series["n"].to_pylist()) == {1}
        # What counts is what the warehouse counts.
        peaks = warehouse.sql(
            "SELECT run_id, headroom_bytes FROM peaks_by_space AS peaks WHERE memory_space = 0"
        )
        headroom = {row["run_id"]: row["headroom_bytes"] for row in peaks.arrow().to_pylist()}
        assert headroom == {row["run"]: row["headroom_bytes"] for row in again}
        # No size is what the program's name means, or what the newest night holds.
        assert not len(warehouse.peaks())
        # The folder that XLA dumped into is gone.
        sources = {row["source"] for row in warehouse.runs().arrow().to_pylist()}
        assert [source.endswith("/train.py:build") for source in sources] == [True]
    # A page of it needs no compiler.
    run_memhouse("report", "--fit", program, "-o", "fit.html")
    page = Path("fit.html").read_text()
    assert all(sentence in page for sentence in found.sentences())
    assert knee["run"] in page
    # A loop that ends when it ends is named by its line; so is work that each device does.
    opened, times = memhouse.open, iter(range(9))

    def opening(db):
        if next(times) == 1:
            # What is compiled by then is stored later.
            raise memhouse.WarehouseBusyError(str(db), "another process")
        return opened(db)

    monkeypatch.setattr(memhouse, "open", opening)
    asked = {"how": ["loops", "replicated", "shared"], "batch": range(8, 9), "topology": "cpu:2"}
    found = memhouse.fit(program, memory="1MiB", **asked)
    _, replicated, looping, *_ = found.sentences()
    assert "whose turns are not known: train.py:" in looping
    assert "+100 % work above the program's own: it is replicated over its 2 devices" in replicated
    works = {row["how"]: row["extra_work_ratio"] for row in found.rows.arrow().to_pylist()}
    assert works == {"loops": None, "replicated": 1.0, "shared": 0.0}


class FilterJit:
    """A stand-in for the function that eqx.filter_jit(…, donate="all-except-first") returns."""

    __module__ = "equinox._jit"
    donate_first = False
    donate_rest = True

    def __init__(self, function):
        functools.update_wrapper(self, function)

    def __call__(self, *args):
        return self.__wrapped__(*args)

    def lower(self, *args):
        raise TypeError("a ShapeDtypeStruct is a constant for Equinox")


@dataclass
class FrameworkLowered:
    """A stand-in for the Lowered of Flax NNX and Equinox."""

    lowered: Any


@pytest.fixture
def jax():
    found = pytest.importorskip("jax", reason="jax is not installed: it is in the dev extra")
    found.config.update("jax_platforms", "cpu")
    return found


def lowered_for_cpu(jax, *built):
    """What the worker makes of what a build function returns."""
    value = built if len(built) > 1 else built[0]
    return fit_worker._lowered(lambda: value, jax.devices("cpu"), {}, ())


def test_the_arguments_of_equinox_are_its_arrays(jax):
    """A model has leaves that are no arrays, such as its activation."""
    x = jax.ShapeDtypeStruct((8, 4), "float32")
    model = {"activation": jax.numpy.tanh, "weight": np.ones((4, 4), np.float32)}

    def step(model, x):
        return model["activation"](x @ model["weight"]), model

    lowered, flops = lowered_for_cpu(jax, FilterJit(step), (model, x))
    ((stepped, batch), _) = lowered.args_info
    assert stepped["activation"] is None
    assert (stepped["weight"].donated, batch.donated) == (False, True)
    assert flops == 2 * 8 * 4 * 4
    # The model's method is a partial.
    method = functools.partial(FilterJit(step), model)
    assert lowered_for_cpu(jax, method, (x,))[0].as_text() == lowered.as_text()


def test_a_lowered_program_is_of_the_topologys_platform(jax):
    traced = jax.jit(lambda x: x + 1).trace(np.ones(3, np.float32))
    lowered = traced.lower()
    for built in (lowered, FrameworkLowered(lowered)):
        assert lowered_for_cpu(jax, built) == (lowered, None)
    with pytest.raises(fit_worker._WrongError, match=r"lowered for tpu, not for cpu: return"):
        lowered_for_cpu(jax, traced.lower(lowering_platforms=("tpu",)))


@pytest.mark.slow
def test_what_cannot_be_built_is_told_in_a_line(program):
    """What was compiled is kept, nothing is left running; what the function prints is nowhere."""
    hows = {
        "raises": "ValueError: no such layer (train.py:",
        "misses": "No module named 'no_such_package' (train.py:",
        "wrong": "return a jitted function",
        "is killed": "SIGSEGV",
        "wants 100 GB": "more than 1.00 GiB of memory (ram)",
        "never ends": "longer than 12 s (timeout)",
        "leaves a child": None,
        "ends": "status 3",
    }
    asked = {"batch": [8], "memory": "1GiB", "timeout": 12, "ram": "1GiB"}
    found = memhouse.fit(program, how=["plain", *hows], jobs=3, **asked)
    rows = {row["how"]: row for row in found.arrow().to_pylist()}
    for how, message in hows.items():
        outcome, told = rows[how]["outcome"], rows[how]["message"]
        if message is None:
            assert outcome == "fits"
        else:
            given_up = how in ("never ends", "wants 100 GB")
            assert outcome == ("given up" if given_up else "failed")
            assert message in told
            assert len(told.splitlines()) == 1
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert "sleep 4242" not in running.stdout
    assert program.partition(":")[0] not in running.stdout
    (again,) = memhouse.fit(program, how="plain", **asked).arrow().to_pylist()
    assert not again["is_new"]
    with pytest.raises(memhouse.MemhouseError, match="it has no nothing"):
        memhouse.fit("train.py:nothing", batch=[8], memory="1GiB")
