CREATE OR REPLACE MACRO run(n, of_branch := NULL) AS (
    SELECT COALESCE(ANY_VALUE(placed.run_id), ERROR('there is no run ' || n))
    FROM (
        SELECT
            run_id,
            branch,
            ROW_NUMBER() OVER (PARTITION BY branch ORDER BY run_at DESC, run_seq DESC) AS age,
            FIRST_VALUE(branch) OVER (ORDER BY branch_rank, run_at DESC, run_seq DESC)
                AS default_branch
        FROM internal.lineages
    ) AS placed
    WHERE placed.age = -n AND placed.branch = COALESCE(of_branch, placed.default_branch)
);
COMMENT ON MACRO run IS
'The name of a run by its place from the end: run(-1) is the newest, run(-2) the one before.

Of the default branch, or of another: run(-1, of_branch := ''fix''). The default branch is main,
else master, else the runs without a branch, else the branch of the newest run. An error if there
are not so many runs. The order is that of run_at.

n: -1, -2 and so on
of_branch: the branch; the default branch if it is left out';

CREATE OR REPLACE MACRO module(named) AS (
    SELECT
        COALESCE(
            MAX_BY(
                dumps.module_id,
                (dumps.workload || '/' || dumps.module_name = named, dumps.workload = named,
                newest.is_alive, COALESCE(memory.peak_bytes, 0))
            ),
            ERROR('there is no module ' || named)
        )
    FROM internal.newest
    INNER JOIN dumps ON dumps.dump_id = newest.dump_id
    LEFT JOIN module_memory AS memory
        ON memory.module_id = dumps.module_id AND memory.memory_space = 0
    WHERE ENDS_WITH('/' || dumps.workload, '/' || named)
        OR ENDS_WITH('/' || dumps.workload || '/' || dumps.module_name, '/' || named)
);
COMMENT ON MACRO module IS
'The module that a name means today: a module_id.

Of several newest modules of the name, that with the largest peak in memory space 0, and one of a
program that is gone only if no other has the name. An error if there is none.

named: a workload or its last folders, a module''s name, or WORKLOAD/NAME; a whole name goes first';
