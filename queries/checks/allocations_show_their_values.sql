-- An allocation that is occupied throughout is shown by a value that lies in it.
--
-- An argument's allocation is shown by the argument, if the HLO text is there to say so.
SELECT
    allocations.module_id,
    'allocation ' || allocations.allocation_index || ' is shown by '
    || COALESCE(CAST(allocations.value_id AS VARCHAR), 'no value') AS breach
FROM allocations
LEFT JOIN "values" AS shown
    ON shown.module_id = allocations.module_id
        AND shown.value_id = allocations.value_id
        AND shown.allocation_index = allocations.allocation_index
LEFT JOIN instructions
    ON instructions.module_id = shown.module_id
        AND instructions.instruction_id = shown.instruction_id
WHERE CASE
        WHEN allocations.is_temp OR allocations.is_thread_local
            THEN allocations.value_id IS NOT NULL
        WHEN shown.value_id IS NULL
            THEN EXISTS (
                    SELECT 1
                    FROM "values"
                    WHERE "values".module_id = allocations.module_id
                        AND "values".allocation_index = allocations.allocation_index
                )
        ELSE allocations.is_parameter AND instructions.opcode <> 'parameter'
    END
