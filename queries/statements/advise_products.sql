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
ORDER BY products.instruction_id, operands.operand_number
