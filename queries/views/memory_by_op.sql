-- Which operations own the peak.
--
-- A row per module, memory space and operation; the rows add up to the peak.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- operation: the operation that computes what the buffers hold, for example dot_general;
-- argument for arguments and their copies; the opcode where the program has no name for it
-- buffers: how many buffers it owns
-- counted_bytes: what they add to the peak
-- share: counted_bytes over the peak
-- largest_bytes: the largest of them
-- opcodes: the opcodes of the instructions that make them
SELECT
    module_id,
    memory_space,
    CASE
        WHEN pass = 'argument' OR category = 'argument' THEN 'argument'
        ELSE COALESCE(operation, opcode)
    END AS operation,
    COUNT(*) AS buffers,
    CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share,
    MAX(counted_bytes) AS largest_bytes,
    STRING_AGG(DISTINCT opcode, ', ' ORDER BY opcode) AS opcodes
FROM _counted_buffers
WHERE is_peak
GROUP BY 1, 2, 3
