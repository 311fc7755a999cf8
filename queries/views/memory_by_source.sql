-- Which lines of Python own the peak.
--
-- A row per module, memory space, file and line; the rows add up to the peak. A line owns what
-- it computes, wherever XLA moves or stacks the result. Arguments have no line, and neither has
-- what XLA makes by itself: each kind of these has a row.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- source_file: the Python file
-- source_line: the line
-- without_line: arguments, copies of arguments, outputs, constants or temps; null with a line
-- buffers: how many buffers it owns
-- counted_bytes: what they add to the peak
-- share: counted_bytes over the peak
-- guess_bytes: the part of counted_bytes whose line is a guess: the rules operand and weak
-- categories: what they are: argument, output, constant, temp or other
-- passes: the passes that they belong to, see `values`
SELECT
    module_id,
    memory_space,
    source_file,
    source_line,
    CASE WHEN source_file IS NULL THEN kind END AS without_line,
    COUNT(*) AS buffers,
    CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share,
    CAST(
        SUM(CASE WHEN origin_rule IN ('operand', 'weak') THEN counted_bytes ELSE 0 END) AS BIGINT
    ) AS guess_bytes,
    STRING_AGG(DISTINCT category, ', ' ORDER BY category) AS categories,
    STRING_AGG(DISTINCT pass, ', ' ORDER BY pass) AS passes
FROM _counted_buffers
WHERE is_peak
GROUP BY 1, 2, 3, 4, 5
