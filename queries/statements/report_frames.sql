-- The Python frames of module $1: where each is, and who calls it.
SELECT
    stack_frame_id,
    parent_frame_id,
    "function",
    file || COALESCE(':' || line, '') AS place
FROM stack_frames
WHERE module_id = $1
ORDER BY stack_frame_id
