-- Every computation but the one where the program starts is called by some instruction.
SELECT
    computations.module_id,
    'computation ' || computations.computation || ' is called by nothing' AS breach
FROM computations
LEFT JOIN calls
    ON calls.module_id = computations.module_id AND calls.computation = computations.computation
WHERE NOT computations.is_entry AND calls.computation IS NULL
