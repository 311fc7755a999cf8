-- Every value lies within its allocation, in that allocation's memory space.
SELECT
    "values".module_id,
    'value ' || "values".value_id || ' is at ' || "values".offset_bytes || ' to '
    || ("values".offset_bytes + "values".size_bytes) || ' in allocation '
    || "values".allocation_index || COALESCE(' of ' || allocations.size_bytes || ' bytes', '')
        AS breach
FROM "values"
LEFT JOIN allocations
    ON allocations.module_id = "values".module_id
        AND allocations.allocation_index = "values".allocation_index
WHERE "values".allocation_index IS NOT NULL
    -- Estimated values have places, but no packing.
    AND "values".module_id NOT IN (SELECT module_id FROM modules WHERE origin = 'estimated')
    AND (
        allocations.allocation_index IS NULL
        OR "values".offset_bytes + "values".size_bytes > allocations.size_bytes
        OR "values".memory_space <> allocations.memory_space
    )
