-- What the top of a report says of dump $1 in memory space $2: its figures, device and compiler.
SELECT
    dumps.run_id,
    runs.run_at,
    dumps.platform,
    dumps.compiler,
    dumps.device_kind,
    dumps.device_memory_bytes,
    dumps.topology,
    dumps.oom,
    modules.origin,
    _peaks.peak_bytes,
    _peaks.peak_time,
    _peaks.schedule_length,
    instructions.instruction AS peak_instruction,
    _peaks.headroom_bytes,
    _peaks.argument_bytes,
    _peaks.output_bytes,
    _peaks.alias_bytes,
    _peaks.constant_bytes,
    _peaks.temp_bytes,
    _peaks.packing_bytes,
    _peaks.padding_bytes
FROM dumps
INNER JOIN runs ON runs.run_id = dumps.run_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN _peaks ON _peaks.dump_id = dumps.dump_id AND _peaks.memory_space = $2
LEFT JOIN instructions
    ON instructions.module_id = _peaks.module_id
        AND instructions.instruction_id = _peaks.peak_instruction_id
WHERE dumps.dump_id = $1
