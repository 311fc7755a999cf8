-- The value that stands for an allocation that is occupied throughout.
--
-- A row per choice and per allocation that is neither a temp nor thread-local. The view is the
-- one place that chooses. The choice `largest` takes the largest value of all; an allocation
-- without values has a row without a value. The choice `array` takes the largest live array; of
-- an output's arrays only those that live out, because an output's allocation also holds other
-- values before the output. Filter on choice.
--
-- choice: largest or array
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- allocation_index: the allocation, see `allocations`
-- size_bytes: the allocation's size
-- schedule_length: instructions in the module's schedule
-- is_parameter: the allocation holds an argument
-- maybe_live_out: the allocation may hold a result
-- is_constant: the allocation holds a constant
-- parameter_number: which argument
-- parameter_shape_index: which part of that argument
-- value_id: the value, see `values`
-- instruction_id: the instruction that defines the value
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- shape: the value's shape with layout
-- padding_bytes: what tiling adds to the value's logical size
SELECT
    'largest' AS choice,
    module_id,
    memory_space,
    allocation_index,
    size_bytes,
    schedule_length,
    is_parameter,
    maybe_live_out,
    is_constant,
    parameter_number,
    parameter_shape_index,
    value_id,
    instruction_id,
    shape_index,
    shape,
    padding_bytes
FROM (
    SELECT
        allocations.module_id,
        allocations.memory_space,
        allocations.allocation_index,
        allocations.size_bytes,
        modules.schedule_length,
        allocations.is_parameter,
        allocations.maybe_live_out,
        allocations.is_constant,
        allocations.parameter_number,
        allocations.parameter_shape_index,
        "values".value_id,
        "values".instruction_id,
        "values".shape_index,
        "values".shape,
        "values".size_bytes - "values".logical_bytes AS padding_bytes,
        ROW_NUMBER() OVER (
            PARTITION BY allocations.module_id, allocations.allocation_index
            ORDER BY "values".size_bytes DESC, "values".value_id
        ) AS size_rank
    FROM allocations
    INNER JOIN modules ON modules.module_id = allocations.module_id
    LEFT JOIN "values"
        ON "values".module_id = allocations.module_id
            AND "values".allocation_index = allocations.allocation_index
    WHERE NOT allocations.is_temp AND NOT allocations.is_thread_local
) AS sized
WHERE size_rank = 1
UNION ALL
SELECT
    'array',
    module_id,
    memory_space,
    allocation_index,
    size_bytes,
    schedule_length,
    is_parameter,
    maybe_live_out,
    is_constant,
    parameter_number,
    parameter_shape_index,
    value_id,
    instruction_id,
    shape_index,
    shape,
    padding_bytes
FROM (
    SELECT
        allocations.module_id,
        allocations.memory_space,
        allocations.allocation_index,
        allocations.size_bytes,
        modules.schedule_length,
        allocations.is_parameter,
        allocations.maybe_live_out,
        allocations.is_constant,
        allocations.parameter_number,
        allocations.parameter_shape_index,
        _lives.value_id,
        _lives.instruction_id,
        _lives.shape_index,
        _lives.shape,
        _lives.padding_bytes,
        ROW_NUMBER() OVER (
            -- A filter on the flags reaches the scan, because they are part of the partition.
            PARTITION BY
                allocations.module_id, allocations.allocation_index,
                allocations.is_parameter, allocations.maybe_live_out
            ORDER BY _lives.size_bytes DESC, _lives.value_id
        ) AS size_rank
    FROM allocations
    INNER JOIN modules ON modules.module_id = allocations.module_id
    INNER JOIN _lives
        ON _lives.module_id = allocations.module_id
            AND _lives.allocation_index = allocations.allocation_index
    WHERE
        NOT allocations.is_temp
        AND NOT allocations.is_thread_local
        AND _lives.element_type IS NOT NULL
        AND _lives.end_time IS NOT NULL
        AND (allocations.is_parameter OR _lives.end_time = modules.schedule_length)
) AS sized_arrays
WHERE size_rank = 1
