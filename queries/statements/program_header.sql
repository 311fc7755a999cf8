-- Where module $1 starts, and which of its arguments and results share memory.
SELECT
    computations.computation AS entry,
    modules.input_output_alias
FROM computations
INNER JOIN modules USING (module_id)
WHERE module_id = $1 AND computations.is_entry
