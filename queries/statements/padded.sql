-- What tiling pads in module $1 and memory space $2: equal values of a line are one row. What is
-- live at the peak comes first.
SELECT
    padding_bytes,
    COUNT(*) AS "values",
    is_live_at_peak AS live_at_peak,
    times_logical,
    size_bytes,
    shape,
    REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line AS source,
    MIN(op_name) AS op_name,
    MIN(instruction) AS first_instruction,
    (SELECT modules.origin FROM modules WHERE modules.module_id = $1) AS origin
FROM _module_padding
WHERE module_id = $1 AND memory_space = $2
GROUP BY
    padding_bytes, is_live_at_peak, times_logical, size_bytes, shape, source_file, source_line
ORDER BY
    is_live_at_peak DESC, padding_bytes * COUNT(*) DESC, padding_bytes DESC, shape,
    source_file, source_line
