-- An instruction calls every computation except the entry computation.
SELECT
    computations.module_id,
    'computation ' || computations.computation || ' is not called' AS breach
FROM computations
LEFT JOIN calls
    ON calls.module_id = computations.module_id AND calls.computation = computations.computation
WHERE NOT computations.is_entry AND calls.computation IS NULL
