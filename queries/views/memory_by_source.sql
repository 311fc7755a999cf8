-- Which lines of Python own the peak.
--
-- A row per module, memory space, file and line; the rows add up to the peak. Arguments, and
-- copies that XLA makes by itself, have no line: each category of these has a row.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- source_file: the Python file
-- source_line: the line
-- buffers: how many buffers it owns
-- counted_bytes: what they add to the peak
-- share: counted_bytes over the peak
-- categories: what they are: argument, output, constant, temp or other
SELECT
    module_id,
    memory_space,
    source_file,
    source_line,
    COUNT(*) AS buffers,
    CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
    SUM(share) AS share,
    STRING_AGG(DISTINCT category, ', ' ORDER BY category) AS categories
FROM peak_buffers
GROUP BY
    module_id,
    memory_space,
    source_file,
    source_line,
    CASE WHEN source_file IS NULL THEN category END
