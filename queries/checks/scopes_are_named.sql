-- Every scope that an instruction is in has a row, and every row has an instruction.
SELECT
    instructions.module_id,
    instructions.instruction || ' is in scope ' || instructions.scope_id
    || ', which is not in scopes' AS breach
FROM instructions
LEFT JOIN scopes
    ON scopes.module_id = instructions.module_id
        AND scopes.scope_id = instructions.scope_id
WHERE instructions.scope_id IS NOT NULL AND scopes.scope_id IS NULL
UNION ALL
SELECT scopes.module_id, 'no instruction is in scope ' || scopes.scope_id
FROM scopes
WHERE NOT EXISTS (
        SELECT 1
        FROM instructions
        WHERE instructions.module_id = scopes.module_id
            AND instructions.scope_id = scopes.scope_id
    )
