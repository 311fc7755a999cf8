-- If a dump has HLO text, the text has every instruction that the dump names.
SELECT
    instructions.module_id,
    instructions.instruction || ' is not in the HLO text' AS breach
FROM instructions
WHERE instructions.computation IS NULL
    AND instructions.module_id IN (SELECT module_id FROM computations)
