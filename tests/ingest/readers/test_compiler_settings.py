"""What stands beside a dump: compiler flags, and the device compiled for."""

import gzip
import re

import pytest

import memhouse
from memhouse.ingest.readers.compiler_settings import (
    read_compilation_environment,
    read_debug_options,
    read_flagfile,
    read_gpu_target,
    read_tpu_target,
)
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.errors import DumpError

from ...support.dumps import DATA, content, copy_dump, lines
from ...support.history import NIGHTS
from ...support.warehouse import fill, rows


def text_lines(text: str):
    return split_lines(text.encode())


# --- flags ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "text", "flags"),
    [
        # No value is true, and the last of equal flags holds.
        (
            read_flagfile,
            "--xla_a\n\n--xla_b=\n--xla_c=1\n--xla_c=x=y z\n",
            {"xla_a": "true", "xla_b": "", "xla_c": "x=y z"},
        ),
        # The values of a repeated field are joined.
        (
            read_debug_options,
            'xla_passes: "fusion"\nxla_gpu: FUSION\nxla_passes: "rematerialization"\n',
            {"xla_passes": "fusion,rematerialization", "xla_gpu": "FUSION"},
        ),
        (
            read_debug_options,
            'xla_options {\n  key: "xla_a"\n  value: "1"\n}\n',
            {"xla_options.key": "xla_a", "xla_options.value": "1"},
        ),
    ],
)
def test_flags_of_either_file(read, text, flags):
    assert read(text_lines(text)) == flags


DROPPED = (
    "xla_dump_to",
    "xla_dump_hlo_as_text",
    "xla_jf_dump_hlo_text",
    "xla_gpu_dump_llvmir",
    "xla_jf_llvm_use_bitcode_dump",
    "xla_tcs_program_dump_file",
    "xla_tpu_impure_allow_scoped_vmem_adjuster_file_dumps",
    "xla_gpu_cuda_data_dir",
    "xla_gpu_per_fusion_autotune_cache_dir",
    "xla_gpu_kernel_cache_file",
    "xla_tpu_impure_offloaded_lowering_files_dir",
    "xla_jf_generate_cpu_profile_to",
)
KEPT = (
    # What these name changes the program.
    "xla_gpu_pgle_profile_file_or_directory_path",
    "xla_gpu_load_autotune_results_from",
    "xla_gpu_algorithm_denylist_path",
    "xla_tpu_autofdo_profile_dir",
    "xla_tpu_autofdo_proposed_layout_file",
    "xla_tpu_impure_latency_hiding_scheduler_profile_path",
    "xla_ior_stored_solution_path",
    "xla_gpu_use_new_autotune_cache_format",
    "xla_tpu_autofdo_enable_override_profile_dir",
    "xla_tpu_keep_hlo_proto_literals_up_to",
    "xla_force_host_platform_device_count",
    "xla_jf_critical_path_scheduler",
    "xla_tpu_enable_host_aware_passes",
)


def test_flags_of_dumps_caches_and_toolchains_are_left_out():
    for value in ("", "true", "/a/venv/lib/thing"):
        both = "".join(f"--{flag}={value}\n" for flag in (*DROPPED, *KEPT))
        assert set(read_flagfile(text_lines(both))) == set(KEPT)
        both = "".join(f'{flag}: "{value}"\n' for flag in (*DROPPED, *KEPT))
        assert set(read_debug_options(text_lines(both))) == set(KEPT)


def test_of_a_path_the_file_is_kept():
    for value, kept in (
        ("/a/venv/lib/step.pb", "step.pb"),
        ("~/step.pb", "step.pb"),
        ("gs://bucket/a/step.pb", "step.pb"),
        ("C:\\a\\step.pb", "step.pb"),
        ("/a/x.pb,/b/y.pb", "x.pb,y.pb"),
        ("'/a/x.pb'", "'x.pb'"),
        ("1/2", "1/2"),
        ("step.pb", "step.pb"),
        (".*/while/.*", ".*/while/.*"),
        ("", ""),
        ("-1", "-1"),
    ):
        assert read_flagfile(text_lines(f"--xla_a_from={value}\n")) == {"xla_a_from": kept}


@pytest.mark.parametrize(
    ("read", "text", "line", "said"),
    [
        (read_flagfile, "--xla_a=1\nxla_b=2\n", 2, "'xla_b=2'"),
        (read_flagfile, "--=2\n", 1, "'--=2'"),
        (read_debug_options, "xla_a: 1\nxla_b 2\n", 2, "'xla_b 2'"),
        (read_debug_options, "a: 1\n}\n", 2, "'}'"),
        (read_gpu_target, "gpu_device_info {\n  name: 1\n", 2, "ends within"),
        (read_tpu_target, "--xla_a=1\n", 1, "'--xla_a=1'"),
        (read_compilation_environment, "# something else\nxla_a: 1\n", 1, None),
        (read_compilation_environment, "xla_a: 1\nxla_b = 2\n", 2, None),
        (read_compilation_environment, "xla_a {\n", 1, None),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(read, text, line, said):
    with pytest.raises(DumpError, match=said and re.escape(said)) as error:
        read(text_lines(text))
    assert error.value.line == line


# --- devices ----------------------------------------------------------------------------


def test_a_gpu_says_its_name_and_its_memory():
    found = read_gpu_target(text_lines('device_description_str: "A100"\n'))
    assert found == {"device_kind": "A100", "device_memory_bytes": None}
    assert read_gpu_target(lines("gpu/decode-h100/*.gpu_target_config.pbtxt")) == {
        "device_kind": "NVIDIA H100 80GB HBM3",
        "device_memory_bytes": 84942979072,
    }


# libtpu of JAX 0.7 prints a number for the code name.
@pytest.mark.parametrize("workload", ["llama-v5e", "llama-v5e-jax0.7.0"])
def test_a_tpu_has_its_users_name_and_its_memory(workload):
    assert read_tpu_target(lines(f"tpu/{workload}/*.target_arguments.txt")) == {
        "device_kind": "TPU v5e",
        "device_memory_bytes": 16 * 2**30 - 258 * 2**20,
        "topology": "2x2x1 chips a host, 1x1x1 hosts",
    }


def test_an_unknown_chip_or_configuration_is_not_guessed():
    known = content("tpu/llama-v5e/*.target_arguments.txt").decode()
    new = 'tpu_topology_args {\n  version: TPU_VERSION_NEWFISH\n  variant: "lite"\n}\n'
    for text, name in (
        (new, "NEWFISH lite"),
        (known.replace('"default"', '"half"'), "VIPERFISH lite"),
    ):
        found = read_tpu_target(text_lines(text))
        assert (found["device_kind"], found["device_memory_bytes"]) == (name, None)


# --- in the warehouse -------------------------------------------------------------------


def test_the_same_flags_are_one_set_wherever_the_dump_went(history):
    # `xla_dump_to` is "/train/cfg/rn-b48" in one night and "/train/cfg/rn-b64" in the next.
    found = rows(
        history,
        "SELECT COUNT(DISTINCT flags_id), COUNT(flags_id) FROM dumps "
        "WHERE workload = 'resnet-h100'",
    )
    assert found == [(1, len(NIGHTS))]


ENVIRONMENTS = DATA / "devices"
# XLA's name of the sample dump whose flagfile says `--xla_tpu_scoped_vmem_limit_kib=-1`.
STEM = "module_0000.jit__lambda.cl_933746096"


def environment(name):
    """A compilation environment that libtpu 0.0.42.1 wrote."""
    return gzip.decompress((ENVIRONMENTS / f"{name}.tpu_comp_env.txt.gz").read_bytes())


def night(folder, name=None):
    """A sample dump, with a compilation environment beside it."""
    copy_dump("tpu/flash-v5e/module*", folder)
    if name is not None:
        (folder / f"{STEM}.tpu_comp_env.txt").write_bytes(environment(name))
    return folder


def test_options_of_the_call_are_flags_that_are_not_at_their_default():
    found = read_compilation_environment(split_lines(environment("scoped-32-mib")))
    assert found == {"xla_tpu_scoped_vmem_limit_kib": "32768"}
    assert read_compilation_environment(split_lines(environment("default"))) == {}


def test_a_message_in_the_environment_is_its_fields():
    comment = "# {} in the current tpu_comp_env has a non-default value. Default flag value: x\n"
    text = (
        f"{comment.format('xla_a')}xla_a {{\n  enabled: true\n  size: 3\n}}\n"
        f'{comment.format("xla_b")}xla_b: "p"\nxla_b: "q"\nxla_c: 1\n'
    )
    assert read_compilation_environment(text_lines(text)) == {
        "xla_a": "{enabled: true, size: 3}",
        "xla_b": "p,q",
    }


def test_options_of_the_call_replace_the_flagfile(tmp_path, db):
    fill(db, night(tmp_path / "a", "scoped-32-mib"))
    query = """SELECT value FROM dumps INNER JOIN compiler_flags USING (flags_id)
        WHERE flag = 'xla_tpu_scoped_vmem_limit_kib'"""
    assert rows(db, query) == [("32768",)]
    assert rows(db, "SELECT DISTINCT limit_bytes, limit_from FROM kernels") == [
        (32 * 2**20, "xla_tpu_scoped_vmem_limit_kib")
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("default", "scoped-32-mib", True),
        # Who did not keep the file does not say that the option was not set.
        (None, "scoped-32-mib", False),
    ],
)
def test_a_file_that_one_night_lacks_is_no_change(tmp_path, db, before, after, told):
    a = night(tmp_path / "2026-10-01" / "flash", before)
    b = night(tmp_path / "2026-10-02" / "flash", after)
    for file in b.glob("*after_optimizations.txt"):
        # Another program: an unchanged one has no cause.
        text = file.read_text().replace("f32[4,8,2048]{2,1,0", "f32[4,8,2048]{2,0,1")
        file.write_text(text)
    fill(db, a.parent, b.parent)
    flag = "xla_tpu_scoped_vmem_limit_kib"
    assert len(rows(db, "SELECT DISTINCT flags_id FROM dumps")) == 1 + (before != "default" or told)
    ((cause,),) = rows(db, "SELECT cause FROM history WHERE previous_dump_id IS NOT NULL")
    assert (flag in cause) == told
    with memhouse.open(db) as warehouse:
        listed = warehouse.diff("2026-10-01", "2026-10-02")
        assert (flag in str(listed)) == told


def test_another_flag_is_another_set(tmp_path, db):
    """Another place of the dump, or of the virtual environment, is not; nor what cannot be read."""
    for run, level in (("a", "0"), ("b", "4"), ("c", "0"), ("d", None)):
        folder = copy_dump("gpu/decode-h100/module*", tmp_path / run)
        (options,) = folder.glob("*.debug_options")
        text = options.read_text().replace("autotune_level: 0", f"autotune_level: {level}")
        text = text.replace("zg-decode", f"zg-{run}").replace("/train/vg", f"/home/{run}/venv")
        options.write_text(text if level else "xla_gpu_autotune_level = 0\n")
        (summary,) = fill(db, folder)
    (problem,) = summary.problems
    assert problem.startswith(f"{options}:1: ")
    found = rows(db, "SELECT run_id, flags_id, status, device_kind FROM dumps ORDER BY run_id")
    sets = {run: flags_id for run, flags_id, *_ in found}
    assert sets["a"] == sets["c"] != sets["b"]
    assert found[3] == ("d", None, "partial", "NVIDIA H100 80GB HBM3")
    assert rows(db, "SELECT COUNT(*), COUNT(DISTINCT flags_id) FROM compiler_flags") == [(6, 2)]
    assert rows(db, "SELECT COUNT(DISTINCT module_id) FROM dumps") == [(1,)]
