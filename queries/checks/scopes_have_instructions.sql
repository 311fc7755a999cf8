-- Every scope has an instruction.
SELECT scopes.module_id, 'no instruction is in scope ' || scopes.scope_id AS breach
FROM scopes
WHERE NOT EXISTS (
        SELECT 1
        FROM instructions
        WHERE instructions.module_id = scopes.module_id
            AND instructions.scope_id = scopes.scope_id
    )
