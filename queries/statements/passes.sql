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
FROM pass_steps
WHERE module_id = $1
GROUP BY ALL
ORDER BY step;

-- name: touched
-- How many large buffers of the peak of module $1 each step changed, how, and their bytes.
SELECT
    buffer_passes.step,
    buffer_passes.event,
    COUNT(*) AS buffers,
    SUM("values".size_bytes)::BIGINT AS size_bytes
FROM buffer_passes
INNER JOIN "values" USING (module_id, value_id)
WHERE buffer_passes.module_id = $1
GROUP BY buffer_passes.step, buffer_passes.event
ORDER BY buffer_passes.step, size_bytes DESC, buffer_passes.event;

-- name: buffers
-- The large buffers of the peak of module $1, with what passes did to each: a row an event.
SELECT
    buffer_passes.value_id,
    "values".size_bytes,
    "values".shape,
    instructions.instruction,
    COALESCE(
        REGEXP_EXTRACT(instructions.source_file, '[^/]*$') || ':' || instructions.source_line,
        REGEXP_EXTRACT(origins.source_file, '[^/]*$') || ':' || origins.source_line
    ) AS source,
    COALESCE(instructions.op_name, origins.op_name) AS op_name,
    buffer_passes.event,
    buffer_passes.step,
    passes.pipeline,
    passes.compiler_pass,
    buffer_passes.instruction AS instruction_there,
    buffer_passes.before,
    buffer_passes.is_certain
FROM buffer_passes
INNER JOIN "values" USING (module_id, value_id)
INNER JOIN instructions USING (module_id, instruction_id)
LEFT JOIN instructions AS origins
    ON origins.module_id = buffer_passes.module_id
        AND origins.instruction_id = "values".origin_instruction_id
LEFT JOIN passes
    ON passes.module_id = buffer_passes.module_id AND passes.step = buffer_passes.step
WHERE buffer_passes.module_id = $1
ORDER BY "values".size_bytes DESC, buffer_passes.value_id, buffer_passes.event_number
