-- What to look at first in module $1, with what it takes of HBM: a row a finding at most.
SELECT
    'donations' AS finding,
    SUM(saving_bound_bytes)::BIGINT AS size_bytes,
    COUNT(*) AS number,
    STRING_AGG(
        COALESCE(argument_name, 'argument ' || parameter_number),
        ', '
        ORDER BY saving_bound_bytes DESC
    ) AS what,
    NULL AS source,
    NULL AS shape
FROM missed_donations
WHERE module_id = $1 AND memory_space = 0 AND read_later_by IS NULL
HAVING SUM(saving_bound_bytes) > 0
UNION ALL
SELECT
    'padding' AS finding,
    MAX(padding_bytes) AS size_bytes,
    NULL AS number,
    CAST(ROUND(MAX_BY(times_logical, padding_bytes), 1) AS VARCHAR) AS what,
    MAX_BY(source_file || ':' || source_line, padding_bytes) AS source,
    MAX_BY(shape, padding_bytes) AS shape
FROM padding
WHERE module_id = $1 AND memory_space = 0 AND is_live_at_peak
HAVING MAX(padding_bytes) > 0
UNION ALL
SELECT
    'residual' AS finding,
    MAX(size_bytes) AS size_bytes,
    MAX_BY(layers, size_bytes) AS number,
    MAX_BY(operation, size_bytes) AS what,
    MAX_BY(source_file || ':' || source_line, size_bytes) AS source,
    MAX_BY(shape, size_bytes) AS shape
FROM saved_for_backward
WHERE module_id = $1 AND memory_space = 0 AND is_live_at_peak
HAVING MAX(size_bytes) > 0
