-- Which values tiling pads, and by how much.
--
-- A row per value that takes more than its elements do. Values that alias stand in the same
-- bytes: for what padding costs at the peak, sum padding_bytes of `peak_buffers`.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- value_id: the value, see `values`
-- instruction: the instruction that defines it
-- shape_index: which part of its shape, `{}` for all of it
-- opcode: its opcode
-- shape: its shape with layout: the tiles stand after T
-- size_bytes: what it takes
-- logical_bytes: elements x element size
-- padding_bytes: size_bytes - logical_bytes
-- times_logical: size_bytes over logical_bytes
-- is_live_at_peak: it is live when its memory space is fullest
-- op_name: the framework's name of the operation
-- source_file: the Python file of the line that made it
-- source_line: that line
SELECT
    "values".module_id,
    "values".memory_space,
    "values".value_id,
    instructions.instruction,
    "values".shape_index,
    instructions.opcode,
    "values".shape,
    "values".size_bytes,
    "values".logical_bytes,
    "values".size_bytes - "values".logical_bytes AS padding_bytes,
    CAST("values".size_bytes AS DOUBLE) / NULLIF("values".logical_bytes, 0) AS times_logical,
    COALESCE(
        module_memory.peak_time BETWEEN live_ranges.start_time AND live_ranges.end_time, FALSE
    ) AS is_live_at_peak,
    instructions.op_name,
    instructions.source_file,
    instructions.source_line
FROM "values"
INNER JOIN instructions
    ON instructions.module_id = "values".module_id
    AND instructions.instruction_id = "values".instruction_id
LEFT JOIN module_memory
    ON module_memory.module_id = "values".module_id
    AND module_memory.memory_space = "values".memory_space
LEFT JOIN live_ranges
    ON live_ranges.module_id = "values".module_id
    AND live_ranges.value_id = "values".value_id
WHERE "values".size_bytes > "values".logical_bytes
