-- The breaches that a check finds: the module's name in one of its dumps, and the breach.
WITH breaches AS (
{check}
)
SELECT
    COALESCE(
        MIN(dumps.run_id || '/' || dumps.workload || '/' || dumps.module_name),
        CAST(breaches.module_id AS VARCHAR),
        'no module'
    ) AS module,
    breaches.breach
FROM breaches
LEFT JOIN dumps ON dumps.module_id = breaches.module_id
GROUP BY breaches.module_id, breaches.breach
ORDER BY module, breaches.breach
