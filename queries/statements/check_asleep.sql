-- The last dump of each series of run $1's branch and suite, up to run $1.
SELECT
    dumps.dump_id,
    dumps.workload,
    dumps.module_name,
    dumps.platform
FROM lineages AS base
INNER JOIN lineages
    ON lineages.branch = base.branch
        AND lineages.suite = base.suite
        AND lineages.run_number <= base.run_number
INNER JOIN dumps ON dumps.run_id = lineages.run_id
INNER JOIN history ON history.dump_id = dumps.dump_id
WHERE base.run_id = $1
QUALIFY ROW_NUMBER() OVER (PARTITION BY history.series_id ORDER BY history.chain_index DESC) = 1
