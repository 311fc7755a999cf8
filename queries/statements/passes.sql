-- name: steps
-- The texts of module $1 that differ from the one before.
SELECT
    step,
    pipeline,
    compiler_pass,
    estimated_peak_bytes,
    change_bytes,
    change_instructions,
    changes
FROM compiler_pass_steps
WHERE module_id = $1
GROUP BY ALL
ORDER BY step;

-- name: touched
-- How many large buffers of the peak of module $1 each step changed, how, and their bytes.
SELECT
    compiler_pass_events.step,
    compiler_pass_events.event,
    COUNT(*) AS buffers,
    SUM("values".size_bytes)::BIGINT AS size_bytes
FROM compiler_pass_events
INNER JOIN "values" USING (module_id, value_id)
WHERE compiler_pass_events.module_id = $1
GROUP BY compiler_pass_events.step, compiler_pass_events.event
ORDER BY compiler_pass_events.step, size_bytes DESC, compiler_pass_events.event;

-- name: buffers
-- The large buffers of the peak of module $1, with what passes did to each: a row an event.
SELECT
    compiler_pass_events.value_id,
    "values".size_bytes,
    "values".shape,
    instructions.instruction,
    COALESCE(
        REGEXP_EXTRACT(instructions.source_file, '[^/]*$') || ':' || instructions.source_line,
        REGEXP_EXTRACT(origins.source_file, '[^/]*$') || ':' || origins.source_line
    ) AS source,
    COALESCE(instructions.op_name, origins.op_name) AS op_name,
    compiler_pass_events.event,
    compiler_pass_events.step,
    compiler_passes.pipeline,
    compiler_passes.compiler_pass,
    compiler_pass_events.instruction AS instruction_there,
    compiler_pass_events.before,
    compiler_pass_events.is_certain
FROM compiler_pass_events
INNER JOIN "values" USING (module_id, value_id)
INNER JOIN instructions USING (module_id, instruction_id)
LEFT JOIN instructions AS origins
    ON origins.module_id = compiler_pass_events.module_id
        AND origins.instruction_id = "values".origin_instruction_id
LEFT JOIN compiler_passes
    ON compiler_passes.module_id = compiler_pass_events.module_id
        AND compiler_passes.step = compiler_pass_events.step
WHERE compiler_pass_events.module_id = $1
ORDER BY "values".size_bytes DESC, compiler_pass_events.value_id, compiler_pass_events.event_number
