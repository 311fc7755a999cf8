-- The rank of each run's branch: the default branch is the first of those that there are.
--
-- A row per run.
--
-- run_id: the run
-- branch: its branch, empty without one
-- suite: its suite, empty without one
-- run_number: its place in its lineage, see `lineages`
-- branch_rank: 1 for main, 2 for master, 3 without a branch, 4 for others
SELECT
    run_id,
    branch,
    suite,
    run_number,
    CASE branch WHEN 'main' THEN 1 WHEN 'master' THEN 2 WHEN '' THEN 3 ELSE 4 END AS branch_rank
FROM lineages
