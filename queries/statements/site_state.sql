-- One row that is another if the history can be: sums of hashes of the tables that it is made of.
SELECT
    (SELECT SUM(CAST(HASH(runs) AS HUGEINT)) FROM runs) AS runs,
    (SELECT SUM(CAST(HASH(run_labels) AS HUGEINT)) FROM run_labels) AS labels,
    (SELECT SUM(CAST(HASH(dumps) AS HUGEINT)) FROM dumps) AS dumps,
    (SELECT SUM(CAST(HASH(history) AS HUGEINT)) FROM history) AS history,
    (SELECT SUM(CAST(HASH(gone) AS HUGEINT)) FROM gone) AS gone,
    (SELECT SUM(CAST(HASH(accepted_changes) AS HUGEINT)) FROM accepted_changes) AS accepted,
    (SELECT SUM(CAST(HASH(oom_reports) AS HUGEINT)) FROM oom_reports) AS oom
