"""memhouse.toml: an option comes first, then the environment, then the nearest file upwards."""

import pytest

from ..support.command import run_memhouse
from ..support.dumps import DATA
from ..support.made_runs import make_run
from ..support.warehouse import rows

DUMPS = DATA / "dumps/cpu/jax-0.9.0"


@pytest.fixture
def project(tmp_path):
    """A folder with a memhouse.toml and an inner folder, and three warehouses with a run each."""
    for name in ("file", "environment", "option"):
        make_run(tmp_path / f"{name}.duckdb", name, {"train/jit_step": 1000}, day=0)
    (tmp_path / "memhouse.toml").write_text(
        'db = "file.duckdb"\nuser_code = ["*/jax/*"]\n'
        'entry = ["jit_a", "jit_b"]\nlimits = "l.toml"\n'
    )
    (tmp_path / "l.toml").write_text('max_bytes = "999MiB"\nmax_growth = []\n')
    (tmp_path / "inner").mkdir()
    return tmp_path


def test_an_option_comes_before_the_environment_and_that_before_the_file(project):
    inner = project / "inner"
    environment = {"MEMHOUSE_DB": str(project / "environment.duckdb")}
    runs = [
        run_memhouse("runs", "--format", "csv", *options, cwd=inner, env=env).stdout
        for options, env in (
            ((), {}),
            ((), environment),
            (("--db", project / "option.duckdb"), environment),
        )
    ]
    named = [text.splitlines()[1].split(",")[0] for text in runs]
    assert named == ["file", "environment", "option"]
    # The rules too, and with them the run's size fails.
    assert "(../l.toml)" in run_memhouse("check", cwd=inner).stdout
    assert "../file.duckdb" in run_memhouse("compact", cwd=inner).stderr
    told = " ".join(run_memhouse("doctor", cwd=inner).stdout.split())
    assert f"{project}/memhouse.toml sets db ../file.duckdb; user_code */jax/*;" in told
    assert "../file.duckdb: 1 run" in told


def test_runs_get_the_entry_programs(project):
    for run, given in (("set", ()), ("named", ("--label", "entry=jit_c"))):
        run_memhouse("ingest", DUMPS, "--run", run, *given, cwd=project)
    db = project / "file.duckdb"
    labels = rows(db, "SELECT run_id, value FROM run_labels WHERE key = 'entry' ORDER BY run_id")
    assert labels == [("named", "jit_c"), ("set", "jit_a,jit_b")]


@pytest.mark.parametrize(
    ("toml", "facts"),
    [
        ("db = ", ["memhouse.toml"]),
        ('limit = "x"', ["limit", "'limits'"]),
        ('size = "x"', ["size", "db, user_code, entry, limits, macros"]),
        ("db = 3", ['memhouse.toml: db: 3 is no path: write db = "nights.duckdb"']),
        ('db = ""', ['db: "" is no path']),
        ("limits = []", ['limits: [] is no path: write limits = "limits.toml"']),
        (
            "user_code = 3",
            ['user_code: 3 is no list of strings: write user_code = ["*/our_package/*"]'],
        ),
        (
            'user_code = "*/x/*"',
            ['user_code: "*/x/*" is no list of strings: write user_code = ["*/x/*"]'],
        ),
        ("entry = true", ['entry: true is no list of strings: write entry = ["jit_generate"]']),
        ("macros = [1]", ['macros: [1] is no list of strings: write macros = ["*.sql"]']),
        ("[macros]", ["macros: a table is no list of strings"]),
    ],
)
def test_a_wrong_file_is_wrong_usage(tmp_path, toml, facts):
    (tmp_path / "memhouse.toml").write_text(toml)
    done = run_memhouse("peaks", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert [fact for fact in facts if fact not in done.stderr] == []
    assert run_memhouse("check", "--bisect", "train", cwd=tmp_path).returncode == 128
