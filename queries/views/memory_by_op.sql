-- Which kinds of operation own the peak.
--
-- A row per module, memory space and opcode; the rows add up to the peak.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- opcode: the opcode of what defines the buffers; parameter for arguments
-- buffers: how many buffers it owns
-- counted_bytes: what they add to the peak
-- share: counted_bytes over the peak
-- largest_bytes: the largest of them
SELECT
    module_id,
    memory_space,
    opcode,
    COUNT(*) AS buffers,
    CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
    SUM(share) AS share,
    MAX(counted_bytes) AS largest_bytes
FROM peak_buffers
GROUP BY module_id, memory_space, opcode
