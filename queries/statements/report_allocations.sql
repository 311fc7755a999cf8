-- The allocations of module $1 in memory space $2, and what each is for.
SELECT
    allocation_index,
    size_bytes,
    parameter_number,
    CASE
        WHEN is_parameter AND maybe_live_out THEN 'argument and output'
        WHEN is_parameter THEN 'argument'
        WHEN maybe_live_out THEN 'output'
        WHEN is_constant THEN 'constant'
        WHEN is_thread_local THEN 'within one instruction'
        WHEN is_temp THEN 'temp'
        ELSE 'other'
    END AS holds
FROM allocations
WHERE module_id = $1 AND memory_space = $2
ORDER BY allocation_index
