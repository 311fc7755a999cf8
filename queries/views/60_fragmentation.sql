CREATE OR REPLACE VIEW internal.fragmentation AS
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.space,
    allocations.allocation_index,
    allocations.size_bytes,
    allocations.peak_bytes AS live_bound_bytes,
    allocations.size_bytes - allocations.peak_bytes AS fragmentation_bytes,
    CAST(allocations.size_bytes - allocations.peak_bytes AS DOUBLE)
    / NULLIF(allocations.size_bytes, 0) AS wasted,
    allocations.peak_time,
    instructions.instruction,
    held.values_in_it
FROM allocations
INNER JOIN modules ON modules.module_id = allocations.module_id
INNER JOIN (
    SELECT module_id, allocation_index, COUNT(*) AS values_in_it
    FROM "values"
    GROUP BY module_id, allocation_index
) AS held
    ON held.module_id = allocations.module_id
        AND held.allocation_index = allocations.allocation_index
LEFT JOIN instructions
    ON instructions.module_id = allocations.module_id
        AND instructions.schedule_time = allocations.peak_time
WHERE allocations.is_temp
    AND allocations.peak_bytes IS NOT NULL
    AND modules.origin <> 'estimated';

CREATE OR REPLACE VIEW fragmentation_by_space AS
SELECT
    dumped.*,
    fragmentation.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.fragmentation ON fragmentation.module_id = dumped.module_id;
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
    "values".value_id,
    made.instruction,
    "values".shape_index,
    made.opcode,
    "values".shape,
    "values".element_type,
    "values".size_bytes,
    "values".logical_bytes,
    "values".size_bytes - "values".logical_bytes AS padding_bytes,
    CAST("values".size_bytes AS DOUBLE) / NULLIF("values".logical_bytes, 0) AS times_logical,
    COALESCE(
        module_memory.peak_time BETWEEN live_ranges.start_time AND live_ranges.end_time
        OR (
            module_memory.peak_time IS NOT NULL
            AND (
                (allocations.is_parameter AND made.opcode = 'parameter')
                OR (allocations.maybe_live_out AND live_ranges.end_time = modules.schedule_length)
                OR allocations.is_constant
            )
        ),
        FALSE
    ) AS is_live_at_peak,
    held.op_name,
    held.source_file,
    held.source_line
FROM "values"
LEFT JOIN live_ranges
    ON live_ranges.module_id = "values".module_id
        AND live_ranges.value_id = "values".value_id
LEFT JOIN instructions AS made
    ON made.module_id = "values".module_id
        AND made.instruction_id = "values".instruction_id
LEFT JOIN internal.operations AS held
    ON held.module_id = "values".module_id
        AND held.instruction_id
        = COALESCE("values".origin_instruction_id, "values".instruction_id)
LEFT JOIN modules ON modules.module_id = "values".module_id
LEFT JOIN allocations
    ON allocations.module_id = "values".module_id
        AND allocations.allocation_index = "values".allocation_index
        AND NOT allocations.is_thread_local
LEFT JOIN module_memory
    ON module_memory.module_id = "values".module_id
        AND module_memory.memory_space = "values".memory_space
WHERE "values".size_bytes > "values".logical_bytes;

CREATE OR REPLACE VIEW padding AS
SELECT
    dumped.*,
    padding.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.padding ON padding.module_id = dumped.module_id;
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
