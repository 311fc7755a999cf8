-- Which element types own the peak.
--
-- A row per module, memory space and element type; the rows add up to the peak.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- element_type: for example bf16; null for tuples' index tables
-- buffers: how many buffers have it
-- counted_bytes: what they add to the peak
-- share: counted_bytes over the peak
-- padding_bytes: of counted_bytes, what tiling adds to the logical size
-- categories: what they are: argument, output, constant, temp or other
SELECT
    module_id,
    memory_space,
    element_type,
    COUNT(*) AS buffers,
    CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share,
    CAST(
        SUM(
            CASE
                WHEN padding_bytes < counted_bytes THEN padding_bytes
                WHEN padding_bytes IS NOT NULL THEN counted_bytes
            END
        ) AS BIGINT
    ) AS padding_bytes,
    STRING_AGG(DISTINCT category, ', ' ORDER BY category) AS categories
FROM _counted_buffers
WHERE is_peak
GROUP BY module_id, memory_space, element_type
