-- The hosts whose parts run $1 holds; empty for a part without a host.
SELECT host FROM run_parts WHERE run_id = $1
