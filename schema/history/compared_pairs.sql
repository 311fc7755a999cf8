-- Which dumps the causes of the history are of: what is held against, and the dump.
SELECT COALESCE(compared_dump_id, previous_dump_id) AS a_dump_id, dump_id AS b_dump_id
FROM history
WHERE previous_dump_id IS NOT NULL
