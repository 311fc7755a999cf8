-- An allocation ends where the last of its values ends.
SELECT
    allocations.module_id,
    'allocation ' || allocations.allocation_index || ' has ' || allocations.size_bytes
    || ' bytes, its values reach ' || COALESCE(reached.size_bytes, 0) AS breach
FROM allocations
LEFT JOIN (
    SELECT module_id, allocation_index, MAX(offset_bytes + size_bytes) AS size_bytes
    FROM "values"
    GROUP BY module_id, allocation_index
) AS reached
    ON reached.module_id = allocations.module_id
        AND reached.allocation_index = allocations.allocation_index
WHERE allocations.size_bytes <> COALESCE(reached.size_bytes, 0)
    -- Estimated values have places, but no packing.
    AND allocations.module_id NOT IN (SELECT module_id FROM modules WHERE origin = 'estimated')
