-- A value's origin is an instruction, and is there if its rule is there.
SELECT
    "values".module_id,
    'value ' || "values".value_id || ' has the origin '
    || COALESCE(CAST("values".origin_instruction_id AS VARCHAR), 'null') || ' by the rule '
    || COALESCE("values".origin_rule, 'null') || ' and the pass '
    || COALESCE("values".pass, 'null') AS breach
FROM "values"
LEFT JOIN instructions
    ON instructions.module_id = "values".module_id
        AND instructions.instruction_id = "values".origin_instruction_id
WHERE (instructions.instruction_id IS NULL) <> ("values".origin_rule IS NULL)
    OR (instructions.instruction_id IS NULL) <> ("values".pass IS NULL)
    OR (
        "values".pass = 'argument'
        AND instructions.opcode <> 'parameter'
    )
