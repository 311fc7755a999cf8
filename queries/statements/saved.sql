-- What the forward pass of module $1 keeps in memory space $2 for the backward pass, the
-- largest first.
SELECT
    size_bytes,
    layers,
    is_live_at_peak AS live_at_peak,
    REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line AS made_by,
    REGEXP_EXTRACT(read_source_file, '[^/]*$') || ':' || read_source_line AS read_by,
    idle_time,
    peak_idle_time,
    shape,
    op_name,
    instruction,
    (SELECT modules.origin FROM modules WHERE modules.module_id = $1) AS origin
FROM saved_for_backward
WHERE module_id = $1 AND memory_space = $2
ORDER BY size_bytes DESC, residual_id
