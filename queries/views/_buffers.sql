-- Everything that takes memory of its own at some time.
--
-- A row per allocation that is occupied throughout, shown by the value that it is for: the
-- argument, the result, the constant; and a row per value in a temp allocation.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- allocation_index: the allocation, see `allocations`
-- category: argument, output (that is not an argument), constant, temp or other
-- size_bytes: what the allocation or the value takes
-- padding_bytes: what tiling adds to the value's logical size
-- offset_bytes: where in the allocation the buffer starts
-- start_time: first time the buffer is there
-- end_time: last time the buffer is there
-- last_use_time: the last time at which an instruction reads the value
-- value_id: the value, see `values`
-- instruction_id: the instruction that makes the value
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- shape: the value's shape with layout
-- element_type: for example bf16; null for a tuple
-- held_instruction_id: the instruction whose result the value holds
-- origin_rule: how that was found, see `values`; null if it is not known
-- pass: the pass that the value belongs to, see `values`
-- role: what the value is for, see `values`
-- residual_id: the residual that the value holds, see `residuals`
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.allocation_index,
    CASE
        WHEN allocations.is_parameter THEN 'argument'
        WHEN allocations.maybe_live_out THEN 'output'
        WHEN allocations.is_constant THEN 'constant'
        ELSE 'other'
    END AS category,
    allocations.size_bytes,
    "values".size_bytes - "values".logical_bytes AS padding_bytes,
    0 AS offset_bytes,
    0 AS start_time,
    modules.schedule_length AS end_time,
    "values".last_use_time,
    "values".value_id,
    "values".instruction_id,
    "values".shape_index,
    "values".shape,
    "values".element_type,
    COALESCE("values".origin_instruction_id, "values".instruction_id) AS held_instruction_id,
    "values".origin_rule,
    "values".pass,
    "values".role,
    "values".residual_id
FROM allocations
INNER JOIN modules ON modules.module_id = allocations.module_id
LEFT JOIN "values"
    ON "values".module_id = allocations.module_id
        AND "values".value_id = allocations.value_id
WHERE NOT allocations.is_temp AND NOT allocations.is_thread_local
UNION ALL
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.allocation_index,
    'temp' AS category,
    _lives.size_bytes,
    _lives.padding_bytes,
    _lives.offset_bytes,
    _lives.start_time,
    _lives.end_time,
    _lives.last_use_time,
    _lives.value_id,
    _lives.instruction_id,
    _lives.shape_index,
    _lives.shape,
    _lives.element_type,
    _lives.held_instruction_id,
    _lives.origin_rule,
    _lives.pass,
    _lives.role,
    _lives.residual_id
FROM allocations
INNER JOIN _lives
    ON _lives.module_id = allocations.module_id
        AND _lives.allocation_index = allocations.allocation_index
WHERE allocations.is_temp AND _lives.start_time IS NOT NULL
