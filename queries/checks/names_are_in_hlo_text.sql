-- Every instruction named anywhere in a dump with HLO text stands in that text.
SELECT
    instructions.module_id,
    instructions.instruction || ' is not in the HLO text' AS breach
FROM instructions
WHERE instructions.computation IS NULL
    AND instructions.module_id IN (SELECT module_id FROM computations)
