-- What the peak is for: weights, optimizer state, activations, gradients and so on.
--
-- A row per module, memory space and role; the rows add up to the peak. A buffer's role
-- follows from the program's structure, not from names.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- role: weight, optimizer state, state, input, gathered weight, activation (saved for the
-- backward pass), gradient, output, constant or workspace; null without HLO text and for
-- tuples' index tables
-- buffers: how many buffers have it
-- counted_bytes: what they add to the peak
-- share: counted_bytes over the peak
-- largest_bytes: the largest of them
SELECT
    module_id,
    memory_space,
    role,
    COUNT(*) AS buffers,
    CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share,
    MAX(counted_bytes) AS largest_bytes
FROM _counted_buffers
WHERE is_peak
GROUP BY module_id, memory_space, role
