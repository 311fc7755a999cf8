CREATE OR REPLACE VIEW internal.fragmentation AS
SELECT
    module_id,
    memory_space,
    allocations.space,
    allocation_index,
    size_bytes,
    peak_bytes AS live_bound_bytes,
    size_bytes - peak_bytes AS fragmentation_bytes,
    fragmentation_bytes::DOUBLE / NULLIF(size_bytes, 0) AS wasted,
    peak_time,
    instruction,
    values_in_it
FROM allocations
INNER JOIN modules USING (module_id)
INNER JOIN (
    SELECT module_id, allocation_index, COUNT(*) AS values_in_it FROM "values" GROUP BY ALL
) AS held USING (module_id, allocation_index)
LEFT JOIN instructions
    ON instructions.module_id = allocations.module_id AND schedule_time = peak_time
WHERE is_temp AND peak_bytes IS NOT NULL AND origin <> 'estimated';

CREATE OR REPLACE VIEW fragmentation_by_space AS
SELECT *
FROM internal.dumped
INNER JOIN internal.fragmentation USING (module_id);
COMMENT ON VIEW fragmentation_by_space IS
'What packing wastes: what each temp allocation takes above what must be live.

A row per temp allocation. The bound is the most that is live at one time, by XLA''s own live
ranges and sharing: no packing can need less. Bytes where XLA lets several live values lie count
once, also those of different alias sets. Others that are live together must not overlap, so
packing them leaves gaps. Estimated modules have no packing and no row.

Key: dump_id, allocation_index.';
COMMENT ON COLUMN fragmentation_by_space.live_bound_bytes IS
'the most of it that is live at one time';
COMMENT ON COLUMN fragmentation_by_space.fragmentation_bytes IS 'size_bytes - live_bound_bytes';
COMMENT ON COLUMN fragmentation_by_space.wasted IS 'fragmentation_bytes over size_bytes';
COMMENT ON COLUMN fragmentation_by_space.peak_time IS 'the first time at which it is fullest';
COMMENT ON COLUMN fragmentation_by_space.instruction IS 'the instruction at peak_time';
COMMENT ON COLUMN fragmentation_by_space.values_in_it IS 'how many values it holds over time';

CREATE OR REPLACE VIEW fragmentation AS
SELECT * EXCLUDE (memory_space)
FROM fragmentation_by_space
WHERE memory_space = 0;
COMMENT ON VIEW fragmentation IS
'How well the main memory''s temporary buffers are packed.

A row per temp allocation. Other memory spaces are in `fragmentation_by_space`.

Key: dump_id, allocation_index.';
COMMENT ON COLUMN fragmentation.live_bound_bytes IS 'the most of it that is live at one time';
COMMENT ON COLUMN fragmentation.fragmentation_bytes IS 'size_bytes - live_bound_bytes';
COMMENT ON COLUMN fragmentation.wasted IS 'fragmentation_bytes over size_bytes';
COMMENT ON COLUMN fragmentation.peak_time IS 'the first time at which it is fullest';
COMMENT ON COLUMN fragmentation.instruction IS 'the instruction at peak_time';
COMMENT ON COLUMN fragmentation.values_in_it IS 'how many values it holds over time';

CREATE OR REPLACE VIEW internal.padding AS
SELECT
    "values".module_id,
    "values".memory_space,
    "values".space,
    value_id,
    made.instruction,
    shape_index,
    made.opcode,
    "values".shape,
    element_type,
    "values".size_bytes,
    logical_bytes,
    "values".size_bytes - logical_bytes AS padding_bytes,
    "values".size_bytes::DOUBLE / NULLIF(logical_bytes, 0) AS times_logical,
    COALESCE(
        module_memory.peak_time BETWEEN start_time AND end_time
        OR (
            module_memory.peak_time IS NOT NULL
            AND (
                (is_parameter AND made.opcode = 'parameter')
                OR (maybe_live_out AND end_time = schedule_length)
                OR is_constant
            )
        ),
        FALSE
    ) AS is_live_at_peak,
    held.op_name,
    held.source_file,
    held.source_line
FROM "values"
LEFT JOIN live_ranges USING (module_id, value_id)
LEFT JOIN instructions AS made USING (module_id, instruction_id)
LEFT JOIN internal.operations AS held
    ON held.module_id = "values".module_id
        AND held.instruction_id
        = COALESCE("values".origin_instruction_id, "values".instruction_id)
LEFT JOIN modules ON modules.module_id = "values".module_id
LEFT JOIN allocations
    ON allocations.module_id = "values".module_id
        AND allocations.allocation_index = "values".allocation_index
        AND NOT is_thread_local
LEFT JOIN module_memory
    ON module_memory.module_id = "values".module_id
        AND module_memory.memory_space = "values".memory_space
WHERE "values".size_bytes > logical_bytes;

CREATE OR REPLACE VIEW padding AS
SELECT *
FROM internal.dumped
INNER JOIN internal.padding USING (module_id);
COMMENT ON VIEW padding IS
'Which values tiling pads, and by how much.

A row per value that takes more than its elements do. Aliased values share their bytes: for what
padding costs at the peak, sum padding_bytes of `peak_buffers`.

Key: dump_id, value_id.';
COMMENT ON COLUMN padding.logical_bytes IS 'elements x element size';
COMMENT ON COLUMN padding.padding_bytes IS 'size_bytes - logical_bytes';
COMMENT ON COLUMN padding.times_logical IS 'size_bytes over logical_bytes';
COMMENT ON COLUMN padding.is_live_at_peak IS
'it takes memory when its memory space is fullest: it is live then, or its allocation is occupied
throughout and holds it as argument, output or constant';
