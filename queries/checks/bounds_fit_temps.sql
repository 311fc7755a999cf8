-- What must be live at one time in the temps is at most what the temps take.
SELECT
    module_id,
    'memory space '
    || memory_space
    || ': '
    || live_bound_bytes
    || ' bytes must be live in temps of '
    || temp_bytes AS breach
FROM module_memory
WHERE live_bound_bytes > temp_bytes
