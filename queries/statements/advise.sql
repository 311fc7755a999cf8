-- name: program
-- What dump $1 was compiled for.
SELECT
    dumps.platform,
    devices.vmem_bytes,
    modules.origin
FROM dumps
INNER JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN internal.devices ON devices.device_kind = dumps.device_kind
WHERE dumps.dump_id = $1;

-- name: allocations
-- The allocations of module $1 in memory space $2.
SELECT
    allocation_index,
    size_bytes,
    is_temp
FROM allocations
WHERE module_id = $1 AND memory_space = $2 AND NOT is_thread_local
ORDER BY allocation_index;

-- name: values
-- The values of module $1 in memory space $2 that have a live range and a place.
SELECT
    "values".value_id,
    "values".allocation_index,
    "values".offset_bytes,
    "values".size_bytes,
    "values".alias_set,
    live_ranges.start_time,
    live_ranges.end_time
FROM "values"
INNER JOIN live_ranges
    ON live_ranges.module_id = "values".module_id
        AND live_ranges.value_id = "values".value_id
INNER JOIN allocations
    ON allocations.module_id = "values".module_id
        AND allocations.allocation_index = "values".allocation_index
WHERE
    "values".module_id = $1
    AND allocations.memory_space = $2
    AND NOT allocations.is_thread_local
ORDER BY "values".value_id;

-- name: lines
-- The line that each value of module $1 comes from, where one is known.
SELECT
    "values".value_id,
    instructions.source_file || ':' || instructions.source_line AS source
FROM "values"
INNER JOIN instructions
    ON instructions.module_id = $1
        AND instructions.instruction_id
        = COALESCE("values".origin_instruction_id, "values".instruction_id)
WHERE "values".module_id = $1 AND instructions.source_file IS NOT NULL;

-- name: instructions
-- The instructions of module $1, by their numbers, which count from 0.
SELECT
    instruction_id,
    schedule_time,
    source_file,
    source_line
FROM instructions
WHERE module_id = $1
ORDER BY instruction_id;

-- name: entry_arrays
-- The arrays of module $1's arguments and result, with the values that they are, which live.
SELECT
    entry_shapes.* EXCLUDE (module_id, sharding),
    SPLIT_PART(SPLIT_PART(entry_shapes.shape, '[', 2), ']', 1) AS dimensions,
    "values".memory_space,
    "values".allocation_index,
    "values".instruction_id,
    instructions.instruction,
    COALESCE(allocations.is_parameter AND allocations.maybe_live_out, FALSE)
    OR donations.output_shape_index IS NOT NULL AS is_shared,
    NOT entry_shapes.is_output AND (is_shared OR donations.paired_by IS NOT NULL) AS is_donated
FROM entry_shapes
SEMI JOIN live_ranges USING (module_id, value_id)
INNER JOIN "values" USING (module_id, value_id)
INNER JOIN instructions USING (module_id, instruction_id)
LEFT JOIN allocations USING (module_id, allocation_index)
LEFT JOIN donations
    ON donations.module_id = entry_shapes.module_id
        AND donations.paired_by = 'header'
        AND CASE
            WHEN entry_shapes.is_output THEN donations.output_shape_index = entry_shapes.shape_index
            ELSE
                donations.parameter_number = entry_shapes.parameter_number
                AND donations.parameter_shape_index = entry_shapes.shape_index
        END
WHERE entry_shapes.module_id = $1 AND entry_shapes.element_type NOT IN ('token', 'opaque')
ORDER BY
    entry_shapes.is_output, entry_shapes.parameter_number,
    LENGTH(entry_shapes.shape_index), entry_shapes.shape_index;

-- name: roles
-- The arguments of module $1 with their roles, and its outputs with the passes that make them.
SELECT
    value_id,
    role,
    pass
FROM "values"
WHERE
    module_id = $1
    AND role IN ('weight', 'optimizer state', 'state', 'input', 'output')
ORDER BY value_id;

-- name: memory
-- The peak of module $1 in memory space $2.
SELECT
    modules.schedule_length,
    module_memory.peak_bytes,
    module_memory.peak_time
FROM module_memory
INNER JOIN modules ON modules.module_id = module_memory.module_id
WHERE module_memory.module_id = $1 AND module_memory.memory_space = $2;

-- name: consists_of
-- What the peak of module $1 in memory space $2 consists of: the categories, the largest first.
SELECT
    category,
    CAST(SUM(counted_at_peak_bytes) AS BIGINT) AS size_bytes,
    COUNT(*) AS buffers
FROM internal.buffers
WHERE module_id = $1 AND memory_space = $2 AND is_live_at_peak
GROUP BY category
ORDER BY size_bytes DESC, category;

-- name: function_line
-- The first line of the compiled function of module $1: where most of its frames are.
SELECT
    stack_frames.file,
    MIN(stack_frames.line) AS line
FROM stack_frames
INNER JOIN modules ON modules.module_id = stack_frames.module_id
WHERE
    stack_frames.module_id = $1
    AND 'jit_' || SPLIT_PART(stack_frames.function, '.', -1) = modules.module_name
GROUP BY stack_frames.file
ORDER BY COUNT(*) DESC, stack_frames.file;

-- name: body_results
-- What computation $2 of module $1, a loop's body, hands to the next turn: a row per place.
WITH roots AS (
    SELECT MAX(instructions.instruction_id) AS instruction_id
    FROM instructions
    LEFT JOIN operands
        ON operands.module_id = instructions.module_id
            AND operands.operand_instruction_id = instructions.instruction_id
    WHERE
        instructions.module_id = $1
        AND instructions.computation = $2
        AND instructions.opcode = 'tuple'
        AND operands.instruction_id IS NULL
)

SELECT
    operands.operand_number AS place,
    operands.operand_instruction_id AS instruction_id
FROM roots
INNER JOIN operands
    ON operands.module_id = $1 AND operands.instruction_id = roots.instruction_id
ORDER BY operands.operand_number;

-- name: loops
-- The arrays that the loops of module $1 carry, a row per loop and place in its tuple.
-- A value that no turn changes is no phi.
WITH bodies AS (
    SELECT
        calls.instruction_id,
        calls.computation,
        MIN(inner_instructions.schedule_time) AS body_start_time
    FROM calls
    INNER JOIN instructions AS inner_instructions
        ON inner_instructions.module_id = calls.module_id
            AND inner_instructions.computation = calls.computation
    WHERE calls.module_id = $1 AND calls.attribute = 'body'
    GROUP BY calls.instruction_id, calls.computation
)

SELECT
    loops.instruction_id,
    loops.computation,
    loops.schedule_time AS end_time,
    loops."pass" AS loop_pass,
    loops.source_file || ':' || loops.source_line AS source,
    bodies.computation AS body,
    bodies.body_start_time,
    positions.shape_index,
    positions.value_id,
    "values".is_phi,
    "values".size_bytes,
    "values".element_type,
    "values".shape,
    "values"."pass"
FROM instructions AS loops
INNER JOIN bodies ON bodies.instruction_id = loops.instruction_id
INNER JOIN positions
    ON positions.module_id = loops.module_id
        AND positions.instruction_id = loops.instruction_id
INNER JOIN "values"
    ON "values".module_id = positions.module_id
        AND "values".value_id = positions.value_id
WHERE
    loops.module_id = $1
    AND loops.opcode = 'while'
    AND "values".element_type IS NOT NULL
ORDER BY loops.schedule_time, LENGTH(positions.shape_index), positions.shape_index;

-- name: products
-- The products (matrix products, convolutions) of module $1 with their operands' shapes, a row
-- per operand. rounded_shape is the type that JAX gives the product, where XLA computes it in
-- another type and converts it. Products that XLA itself computes again are left out, those that a
-- checkpoint computes again are not.
SELECT
    products.instruction_id,
    products."pass",
    scopes.operation,
    products.shape,
    MIN(rounded.shape) AS rounded_shape,
    products.source_file || ':' || products.source_line AS source,
    operands.operand_number,
    factors.shape AS operand_shape
FROM instructions AS products
INNER JOIN scopes
    ON scopes.module_id = products.module_id
        AND scopes.scope_id = products.scope_id
INNER JOIN operands
    ON operands.module_id = products.module_id
        AND operands.instruction_id = products.instruction_id
INNER JOIN instructions AS factors
    ON factors.module_id = products.module_id
        AND factors.instruction_id = operands.operand_instruction_id
LEFT JOIN operands AS readings
    ON readings.module_id = products.module_id
        AND readings.operand_instruction_id = products.instruction_id
LEFT JOIN instructions AS rounded
    ON rounded.module_id = products.module_id
        AND rounded.instruction_id = readings.instruction_id
        AND rounded.scope_id = products.scope_id
        AND rounded.opcode = 'convert'
WHERE
    products.module_id = $1
    AND products."pass" IN ('forward', 'rematerialised')
    AND products.opcode IN ('dot', 'convolution', 'custom-call')
    AND scopes.operation IN ('dot_general', 'conv_general_dilated')
    AND products.instruction NOT LIKE '%.remat%'
    AND operands.operand_number < 2
GROUP BY ALL
ORDER BY products.instruction_id, operands.operand_number;

-- name: residuals
-- What module $1 saves for its backward pass in memory space $2, the largest first.
SELECT
    saved.residual_id,
    saved.value_id,
    saved.layers,
    saved.size_bytes,
    saved.shape,
    saved.operation,
    saved.opcode,
    saved.source_file || ':' || saved.source_line AS source,
    saved.start_time,
    saved.end_time,
    saved.idle_end_time
FROM internal.saved_for_backward AS saved
WHERE saved.module_id = $1 AND saved.memory_space = $2
ORDER BY saved.residual_id;

-- name: random_bits
-- The random bits that module $1 keeps for its backward pass in memory space $2, the largest first.
SELECT
    value_id,
    size_bytes,
    element_type,
    source_file || ':' || source_line AS source
FROM saved_for_backward
WHERE
    module_id = $1
    AND memory_space = $2
    AND element_type IN ('u32', 'u16', 'u8', 'pred')
    AND (
        operation IN ('random_bits', 'rng_bit_generator', 'threefry2x32')
        OR op_name LIKE '%bernoulli%'
        OR op_name LIKE '%Dropout%'
    )
ORDER BY size_bytes DESC, value_id;

-- name: made_again
-- The largest value of module $1 in memory space $2 that is computed again from time $3 to $4.
SELECT COALESCE(MAX(size_bytes), 0) AS size_bytes
FROM "values"
INNER JOIN live_ranges USING (module_id, value_id)
WHERE
    module_id = $1
    AND memory_space = $2
    AND start_time >= $3
    AND end_time <= $4
    AND "pass" = 'rematerialised';
