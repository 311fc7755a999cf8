-- The value that stands for each allocation that is occupied throughout.
--
-- A row per allocation that is neither a temp nor thread-local. The view is the one place
-- that chooses such values.
--
-- module_id: the module, see `modules`
-- allocation_index: the allocation, see `allocations`
-- value_id: the allocation's largest value; null if the allocation has no values
-- array_value_id: the largest array that is live; in an output's allocation only arrays that live out
WITH held AS (
    SELECT
        allocations.module_id,
        allocations.allocation_index,
        "values".value_id,
        "values".size_bytes,
        -- An output's allocation also holds other values before the output.
        "values".element_type IS NOT NULL
        AND live_ranges.end_time IS NOT NULL
        AND (allocations.is_parameter OR live_ranges.end_time = modules.schedule_length)
            AS is_array
    FROM allocations
    INNER JOIN modules ON modules.module_id = allocations.module_id
    LEFT JOIN "values"
        ON "values".module_id = allocations.module_id
        AND "values".allocation_index = allocations.allocation_index
    LEFT JOIN live_ranges
        ON live_ranges.module_id = "values".module_id
        AND live_ranges.value_id = "values".value_id
    WHERE NOT allocations.is_temp AND NOT allocations.is_thread_local
),

ranked AS (
    SELECT
        module_id,
        allocation_index,
        value_id,
        is_array,
        ROW_NUMBER() OVER (
            PARTITION BY module_id, allocation_index
            ORDER BY size_bytes DESC, value_id
        ) AS size_rank,
        ROW_NUMBER() OVER (
            PARTITION BY module_id, allocation_index, is_array
            ORDER BY size_bytes DESC, value_id
        ) AS array_rank
    FROM held
)

SELECT
    module_id,
    allocation_index,
    MAX(CASE WHEN size_rank = 1 THEN value_id END) AS value_id,
    MAX(CASE WHEN array_rank = 1 AND is_array THEN value_id END) AS array_value_id
FROM ranked
GROUP BY module_id, allocation_index
