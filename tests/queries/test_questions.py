"""What each question answers with: the columns and their types, on two warehouses."""

import pytest

import memhouse

LLAMA = "llama-v5e/"


def two(warehouse):
    """Two modules that differ."""
    runs = warehouse.runs().table["run"].to_pylist()
    nights = ("2026-10-07/llama-v5e", "2026-10-08/llama-v5e")
    return nights if nights[0].split("/")[0] in runs else ("llama-v5e/jit", "llama-v5e-jax0.7.0")


def difference(warehouse):
    (module,) = warehouse.diff(*two(warehouse)).modules
    return module


# What is asked of a warehouse, and the table that answers it.
QUESTIONS = {
    "tables": lambda w: w.tables(),
    "tables TABLE": lambda w: w.tables("dumps"),
    "runs": lambda w: w.runs(),
    "log": lambda w: w.log(),
    "modules": lambda w: w.modules(),
    "peaks": lambda w: w.peaks(),
    "fragmentation": lambda w: w.fragmentation(),
    "kernels": lambda w: w.kernels(),
    "passes": lambda w: w.passes(LLAMA),
    "passes, buffers": lambda w: w.passes(LLAMA, buffers=True),
    "owners": lambda w: w.owners(LLAMA),
    "owners by role": lambda w: w.owners(LLAMA, by="role"),
    "owners, callers": lambda w: w.owners(LLAMA, callers=1),
    "buffers": lambda w: w.buffers(LLAMA),
    "saved": lambda w: w.saved(LLAMA),
    "donations": lambda w: w.donations(LLAMA),
    "timeline": lambda w: w.timeline(LLAMA),
    "advise": lambda w: w.advise(LLAMA).rows,
    "trends": lambda w: w.trends().rows,
    "trends, steps": lambda w: w.trends().steps,
    "since": lambda w: w.since(LLAMA).rows,
    "diff": lambda w: w.diff(*two(w)).rows,
    "diff by scope": lambda w: w.diff(*two(w), by="scope").rows,
    "diff, metrics": lambda w: difference(w).metrics,
    "check": lambda w: w.check().rows,
    "oom": lambda w: w.oom().rows,
    "verify": lambda w: w.verify().rows,
}
# How a type is told; a text is told by its name alone.
TYPES = {
    "string": "",
    "int32": ":int",
    "int64": ":long",
    "double": ":double",
    "bool": ":bool",
    "timestamp[us]": ":time",
    "list<item: int64>": ":longs",
}
# The approved answers. A column that is renamed or goes breaks what users built on it.
COLUMNS = {
    "tables": "table rows:long holds",
    "tables TABLE": "column type meaning",
    "runs": """
        run run_at:time branch hosts dumps:long new_modules:long incomplete:long oom:long
        largest_peak_bytes:long workloads:long modules:long source ingested_at:time""",
    "log": """
        entry:int entered_at:time action run host detail user_name tool_version
        reader_version:int""",
    "modules": """
        run workload module status peak_bytes:long origin total_bytes:long module_id:long
        instructions:int platform device compiler occurrence:int is_entry:bool
        headroom_bytes:long""",
    "peaks": """
        workload module space peak_bytes:long peak_upper_bytes:long total_bytes:long
        headroom_bytes:long run padding_bytes:long peak_instruction memory_space:int is_entry:bool
        fragmentation_bytes:long origin""",
    "fragmentation": """
        workload module space:int fragmentation_bytes:long share:double size_bytes:long run
        fullest_at live_bound_bytes:long""",
    "passes": """
        step:long pipeline compiler_pass estimated_peak_bytes:long change_bytes:long
        change_instructions:long what""",
    "passes, buffers": """
        size_bytes:long instruction source made_by compiler_passes is_certain:bool shape op_name""",
    "kernels": """
        workload kernel count:long space scoped_bytes:long is_lower_bound:bool limit_bytes:long
        headroom_bytes:long source share:double block_bytes:long scratch_bytes:long smem_bytes:long
        module run limit_from op_name opcode first_instruction memory_space:int""",
    "owners": "counted_bytes:long share:double buffers:long source categories is_guess:bool origin",
    "owners by role": """
        counted_bytes:long share:double buffers:long role categories is_guess:bool origin""",
    "owners, callers": """
        counted_bytes:long share:double buffers:long source called_by categories is_guess:bool
        origin""",
    "buffers": """
        counted_bytes:long share:double shape source op_name category role pass value
        padding_bytes:long start_time:int end_time:int last_use_time:int layout is_guess:bool
        origin""",
    "saved": """
        size_bytes:long tensors:long layers:int shape source operation read_by at_peak_bytes:long
        origin""",
    "donations": """
        saving_bound_bytes:long finding argument shape instruction output paired_by
        parameter_number:int origin""",
    "timeline": """
        start_time:int end_time:int occupied_bytes:long live_bytes:long instruction op_name
        origin""",
    "advise": """
        saving_bytes:long low_bytes:long high_bytes:long reserved_low_bytes:long
        reserved_high_bytes:long ranked_by grade tolerance:double finding title
        source write why value_ids:longs alone_bytes:long""",
    "trends": """
        run_id run_at:time run_number:int branch suite workload module_name platform
        occurrence:int is_entry:bool series_id:long series_number:int is_new:bool memory_space:int
        space metric unit value:long previous_value:long change:long change_ratio:double
        best_value:long previous_run_id missed_runs:int is_last:bool runs_since:int cause status
        oom:bool
        content_changed:bool signature_changed:bool compiler_changed:bool flags_changed:bool
        dump_id:long module_id:long program_id:long origin grade:int""",
    "trends, steps": """
        run workload change:long change_ratio:double value:long unit cause module
        previous_run origin""",
    "since": """
        since_run last_run runs:long value:long change:long change_ratio:double
        before_run unit cause origin""",
    "diff": """
        module memory_space:int change_bytes:long what a_bytes:long b_bytes:long shape source
        op_name scope operation pass role category residuals:long layers:int value a_value
        opcode a_start_time:int a_end_time:int b_start_time:int b_end_time:int is_guess:bool
        is_entry:bool""",
    "diff by scope": """
        module memory_space:int change_bytes:long scope a_bytes:long b_bytes:long a_buffers:long
        b_buffers:long is_entry:bool""",
    "diff, metrics": "memory_space:int metric a_bytes:long b_bytes:long change_bytes:long",
    "check": """
        module status verdict before_bytes:long now_bytes:long change_bytes:long
        change_ratio:double baseline_run lowest_bytes:long lowest_run cause why accepted
        dump_id:long is_entry:bool origin metric""",
    "oom": """
        oom_id:long run_id dump_id:long path line:int times:int kind space_name module_name
        capacity_bytes:long used_bytes:long exceeded_bytes:long reserved_bytes:long
        program_bytes:long argument_bytes:long output_bytes:long alias_bytes:long
        temp_bytes:long fragmentation_bytes:long requested_bytes:long limit_bytes:long
        free_bytes:long instruction shape tag op_name source_file source_line:int
        is_rounded:bool is_cut:bool message""",
    "verify": "check module breach",
}


def columns(rows):
    return " ".join(f"{field.name}{TYPES[str(field.type)]}" for field in rows.table.schema)


@pytest.mark.parametrize("name", ["filled", "history"])
def test_each_question_has_its_columns_and_types(name, request):
    """On the samples, where hardly anything repeats, and on ten nights."""
    with memhouse.open(request.getfixturevalue(name), read_only=True) as warehouse:
        answers = {question: ask(warehouse) for question, ask in QUESTIONS.items()}
    found = {question: columns(rows) for question, rows in answers.items()}
    assert found == {question: " ".join(told.split()) for question, told in COLUMNS.items()}
    there = {question for question, rows in answers.items() if len(rows)}
    may_be_none = {
        "passes",
        "passes, buffers",
        "donations",
        "advise",
        "trends, steps",
        "oom",
        "verify",
    }
    assert QUESTIONS.keys() - there <= may_be_none
