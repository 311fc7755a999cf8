-- Dumps of a run with equal workload, module name and platform have different occurrences.
SELECT
    MIN(module_id) AS module_id,
    'run ' || run_id || ', ' || workload || '/' || module_name || ': '
    || COUNT(*) || ' dumps have the occurrence ' || occurrence AS breach
FROM dumps
GROUP BY run_id, workload, module_name, platform, occurrence
HAVING COUNT(*) > 1
