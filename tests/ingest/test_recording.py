"""In Python: what JAX compiles is recorded and read, with the figures of its dump."""

import functools
import gzip
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import memhouse
from memhouse.ingest.sources.lowered import compile_and_dump

from ..support.binaries import MIXED
from ..support.warehouse import rows

ROWS = (
    "SELECT value_id, allocation_index, offset_bytes, size_bytes, start_time, end_time"
    " FROM values LEFT JOIN live_ranges USING (module_id, value_id) ORDER BY ALL"
)
PEAKS = "SELECT memory_space, peak_bytes, peak_time, total_bytes FROM module_memory"
ALLOCATIONS = "SELECT * EXCLUDE (module_id) FROM allocations ORDER BY allocation_index"


def step(weights, x):
    import jax
    import jax.numpy as jnp

    def loss(weights):
        h = x
        for w in weights:
            h = jnp.tanh(h @ w)
        return jnp.sum(h**2)

    return jax.grad(loss)(weights)


def double(x):
    return 2 * x


X = np.ones((64, 256), np.float32)
ARGUMENTS = ([np.ones((256, 256), np.float32)] * 3, X)


@pytest.fixture(scope="module")
def jax():
    """JAX on the CPU; only the process that runs these tests imports it."""
    found = pytest.importorskip("jax", reason="jax is not installed: it is in the dev extra")
    found.config.update("jax_platforms", "cpu")
    return found


@pytest.fixture(scope="module")
def jitted(jax):
    return jax.jit(step)


@pytest.fixture(scope="module")
def recorded(jitted):
    """The program's dump."""
    return memhouse.record(jitted, *ARGUMENTS)


@pytest.fixture(scope="module")
def compiled(jitted):
    return jitted.lower(*ARGUMENTS).compile()


@pytest.fixture
def warehouse(db):
    with memhouse.open(db) as opened:
        yield opened


def table(module, query):
    return module._store.rows(query)


def program_id(module):
    return table(module, "SELECT program_id FROM modules")["program_id"].to_pylist()


def test_a_jitted_function_is_recorded(recorded):
    assert (recorded.name, recorded.origin, recorded.source) == ("jit_step", "dumped", "dump")
    (peak,) = recorded.peaks().arrow().to_pylist()
    assert peak["peak_bytes"] > 3 * 4 * 256 * 256
    assert repr(recorded).startswith("<jit_step: 1.69 MiB")
    owners = recorded.owners().arrow().to_pylist()
    assert any("test_recording.py" in (row["source"] or "") for row in owners)


def test_what_can_be_recorded(jitted, recorded):
    for again in (
        memhouse.record(jitted.lower(*ARGUMENTS)),
        memhouse.record(jitted.trace(*ARGUMENTS)),
        memhouse.record(jitted, ARGUMENTS[0], x=X),
    ):
        assert program_id(again) == program_id(recorded)


@dataclass
class FrameworkJit:
    """A stand-in for what flax.nnx.jit and eqx.filter_jit return, with the same attributes."""

    jitted: Any

    def __call__(self, *args):
        return self.jitted(*args)

    def lower(self, *args, **kwargs):
        return FrameworkLowered(self.jitted.lower(*args, **kwargs))


@dataclass
class FrameworkLowered:
    """A stand-in for the Lowered of Flax NNX and Equinox."""

    lowered: Any

    def compile(self):
        return FrameworkCompiled(self.lowered.compile())

    def as_text(self):
        return self.lowered.as_text()


@dataclass
class FrameworkCompiled:
    """A stand-in for the Compiled of Flax NNX and Equinox."""

    compiled: Any


def test_wrappers_of_frameworks_are_recorded_and_read(jitted, recorded, compiled):
    """Flax NNX and Equinox wrap what JAX returns; `Partial` is what a jitted method is."""
    function = FrameworkJit(jitted)
    lowered = function.lower(*ARGUMENTS)
    for again in (
        memhouse.record(function, *ARGUMENTS),
        memhouse.record(lowered),
        memhouse.record(functools.partial(function, ARGUMENTS[0]), X),
        memhouse.record(functools.partial(jitted, x=X), ARGUMENTS[0]),
        memhouse.read(lowered.compile()),
    ):
        assert program_id(again) == program_id(recorded)
    with pytest.raises(memhouse.UsageError, match="it is not compiled yet"):
        memhouse.read(lowered)
    with pytest.raises(memhouse.UsageError, match="it is compiled already"):
        memhouse.record(lowered.compile())


def test_a_jitted_method_is_recorded(jax):
    class Model:
        @functools.partial(jax.jit, static_argnums=0)
        def double(self, x):
            return 2 * x

    assert memhouse.record(Model().double, X).name == "jit_double"


def test_a_compiled_program_says_what_its_dump_says(compiled, recorded):
    read = memhouse.read(compiled)
    assert (read.name, read.origin, read.source) == ("jit_step", "derived", "buffer assignment")
    assert program_id(read) == program_id(recorded)
    for query in (ROWS, PEAKS, ALLOCATIONS):
        assert table(read, query).equals(table(recorded, query)), query
    assert repr(read).startswith("<jit_step: 1.69 MiB")


def test_an_hlo_proto_is_read(jitted, compiled, recorded):
    module = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    assignment = compiled.memory_analysis().serialized_buffer_assignment_proto
    read = memhouse.read(
        b"".join(_field(tag, part) for tag, part in ((1, module), (3, assignment)))
    )
    assert (read.source, program_id(read)) == ("buffer assignment", program_id(recorded))
    # Without an assignment it is estimated.
    read = memhouse.read(_field(1, module))
    assert (read.origin, read.source) == ("estimated", "HloProto without buffer assignment")
    assert "≈" in repr(read)
    assert len(read.notes) == 1
    # An early stage has one reason, and so has what is no proto.
    early = jitted.lower(*ARGUMENTS).compiler_ir("hlo").as_serialized_hlo_module_proto()
    with pytest.raises(memhouse.UsageError, match="early stage"):
        memhouse.read(_field(1, early))
    with pytest.raises(memhouse.UsageError) as raised:
        memhouse.read(b"\n\x00")
    assert str(raised.value).count("HloProto") == 1


def test_a_file_is_read(recorded, compiled, tmp_path):
    binary = memhouse.read(MIXED)
    assert (binary.name, binary.source) == ("jit_mixed", "buffer assignment")
    assert memhouse.read(str(MIXED)).peaks().arrow() == binary.peaks().arrow()
    text = tmp_path / "step.txt.gz"
    text.write_bytes(gzip.compress(compiled.as_text().encode()))
    assert memhouse.read(text).source == "HLO text"


def test_what_cannot_be_read_is_wrong_usage(jitted):
    lowered = jitted.lower(*ARGUMENTS)
    for given in ("nowhere.hlo.pb", MIXED.parent, __file__, jitted, lowered):
        with pytest.raises(memhouse.UsageError):
            memhouse.read(given)


def test_what_cannot_be_recorded_is_wrong_usage(jitted, compiled):
    for given in (double, functools.partial(double, X), None, "HloModule", compiled):
        with pytest.raises(memhouse.UsageError):
            memhouse.record(given)
    # What is lowered takes no arguments.
    with pytest.raises(memhouse.UsageError):
        memhouse.record(jitted.lower(*ARGUMENTS), X)


def test_texts_and_the_binary_are_dumped(jitted, recorded, tmp_path):
    """Up to JAX 0.7 the binary alone has Python stacks; the figures are the texts'."""
    compile_and_dump(jitted.lower(*ARGUMENTS), tmp_path)
    endings = {path.name.partition("after_optimizations")[2] for path in tmp_path.iterdir()}
    assert {".txt", ".hlo.pb"} <= endings
    kinds = table(recorded, "SELECT kind FROM dump_files")["kind"].to_pylist()
    assert "hlo" in kinds
    assert "hlo-proto" not in kinds


def _field(tag, content):
    length, rest = b"", len(content)
    while rest >= 0x80:
        length, rest = length + bytes([rest & 0x7F | 0x80]), rest >> 7
    return bytes([tag << 3 | 2]) + length + bytes([rest]) + content


def test_text_is_estimated(compiled):
    read = memhouse.read(compiled.as_text())
    assert (read.origin, read.source) == ("estimated", "HLO text")
    assert repr(read).startswith("<jit_step: ≈ 1.69 MiB")


class SilentExecutable:
    def __init__(self, executable):
        self.hlo_modules = executable.hlo_modules

    def serialize(self):
        raise NotImplementedError


class Silent:
    """A compiled program of a backend that says little: the GPU's, for example."""

    __module__ = "jax.stages"

    def __init__(self, compiled, text):
        self._compiled, self._text = compiled, text

    def runtime_executable(self):
        return SilentExecutable(self._compiled.runtime_executable())

    def memory_analysis(self):
        raise NotImplementedError

    def as_text(self):
        return self._text


def test_a_backend_that_says_little_is_estimated_from_its_text(compiled):
    read = memhouse.read(Silent(compiled, compiled.as_text()))
    assert (read.name, read.origin, read.source) == ("jit_step", "estimated", "HLO text")
    with pytest.raises(memhouse.UsageError, match=r"memhouse\.record"):
        memhouse.read(Silent(compiled, None))


def test_a_program_becomes_a_run(jitted, warehouse, db):
    summary = warehouse.record(jitted, *ARGUMENTS, labels={"branch": "main"})
    assert (summary.run_id, summary.dumps, summary.problems) == ("jit_step", 1, [])
    again = warehouse.record(jitted, *ARGUMENTS)
    assert (again.run_id, again.unchanged) == ("jit_step", 1)
    other = warehouse.record(jitted, ARGUMENTS[0][:2], X, labels={"branch": "main"})
    assert other.run_id.startswith("jit_step@")
    (trend,) = warehouse.trends().arrow().to_pylist()[1:]
    assert trend["value"] < trend["previous_value"]
    warehouse.close()
    assert rows(db, "SELECT DISTINCT source FROM runs") == [("memhouse.record",)]


def test_labels_are_texts(jitted, warehouse):
    warehouse.record(jitted, *ARGUMENTS, run="A", labels={"branch": "main"})
    failing = Failing(jitted.lower(*ARGUMENTS))
    for labels in ({"branch": 3}, {3: "branch"}, {"": "x"}):
        for call in (
            lambda labels=labels: warehouse.record(failing, labels=labels),
            lambda labels=labels: warehouse.ingest("nowhere", labels=labels),
            lambda labels=labels: warehouse.label("A", labels=labels),
        ):
            with pytest.raises(memhouse.UsageError, match="label"):
                call()
    assert len(warehouse.runs()) == 1


def test_several_programs_join_a_named_run(jitted, warehouse, jax):
    warehouse.record(jitted, *ARGUMENTS, run="night")
    warehouse.record(jax.jit(double), X, run="night")
    warehouse.record(jitted, ARGUMENTS[0][:2], X, run="night")
    assert warehouse.record(jitted, *ARGUMENTS, run="night").unchanged == 1
    found = warehouse.sql("SELECT module_name, occurrence FROM dumps ORDER BY ALL").arrow()
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("jit_double", 1),
        ("jit_step", 1),
        ("jit_step", 2),
    ]
    assert len(warehouse.verify().rows) == 0


def test_a_program_from_the_cache_is_compiled_all_the_same(tmp_path, jax):
    """A program from JAX's cache on disk would dump no buffer assignment."""
    settings = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    cache = pytest.importorskip("jax.experimental.compilation_cache.compilation_cache")
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    try:
        cache.reset_cache()
        jax.jit(double).lower(X).compile()
        cached = list(tmp_path.iterdir())
        assert cached
        jax.clear_caches()
        assert memhouse.record(jax.jit(double), X).origin == "dumped"
        # The cache serves as before, and has nothing more.
        assert jax.config.jax_enable_compilation_cache
        assert list(tmp_path.iterdir()) == cached
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        cache.reset_cache()


class Failing:
    """A lowered program that XLA dumps, and then fails to compile."""

    __module__ = "jax.stages"

    def __init__(self, lowered, dumps=True):
        self._lowered, self._dumps = lowered, dumps

    def compiler_ir(self):
        return self._lowered.compiler_ir()

    def compile(self, compiler_options):
        if self._dumps:
            self._lowered.compile(compiler_options)
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")


def test_what_was_dumped_before_a_failure_is_stored(jitted, warehouse):
    with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED") as raised:
        warehouse.record(Failing(jitted.lower(*ARGUMENTS)))
    (note,) = raised.value.__notes__
    assert "jit_step" in note
    assert len(warehouse.peaks()) == 1


def test_a_failure_in_memory_says_what_keeps_the_dump(jitted, warehouse):
    with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED") as raised:
        memhouse.record(Failing(jitted.lower(*ARGUMENTS)))
    assert "warehouse.record" in raised.value.__notes__[0]
    with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED"):
        warehouse.record(Failing(jitted.lower(*ARGUMENTS), dumps=False))
    assert len(warehouse.runs()) == 0
