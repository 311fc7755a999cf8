-- The work of each instruction: its FLOPs times how often its computation runs.
--
-- A row per module and instruction that is a dot or convolution.
CREATE OR REPLACE VIEW internal.work AS
SELECT
    instructions.module_id,
    instructions.instruction_id,
    instructions.scope_id,
    COALESCE(instructions.pass, 'other') AS pass,
    instructions.flops * computations.executions AS flops
FROM instructions
INNER JOIN computations
    ON computations.module_id = instructions.module_id
        AND computations.computation = instructions.computation
WHERE instructions.flops IS NOT NULL;

CREATE OR REPLACE VIEW internal.work_by_scope AS
SELECT
    work.module_id,
    COALESCE(scopes.scope, '') AS scope,
    work.pass,
    CAST(SUM(work.flops) AS BIGINT) AS flops,
    SUM(work.flops)
    / NULLIF(SUM(SUM(work.flops)) OVER (PARTITION BY work.module_id), 0) AS share,
    COUNT(*) AS instructions
FROM internal.work
LEFT JOIN scopes ON scopes.module_id = work.module_id AND scopes.scope_id = work.scope_id
GROUP BY work.module_id, scope, work.pass;

CREATE OR REPLACE VIEW work_by_scope AS
SELECT
    dumped.*,
    work_by_scope.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.work_by_scope ON work_by_scope.module_id = dumped.module_id;
COMMENT ON VIEW work_by_scope IS
'How much each scope computes, in each pass.

A row per dump, scope and pass with a dot or convolution. The rows of a module add up to
`modules`.flops. Each repeated layer has its rows: `scopes`.fold is the same for all of them, but
has a row per operation too, so join SELECT DISTINCT module_id, scope, fold FROM scopes.

Key: dump_id, scope, pass.';
COMMENT ON COLUMN work_by_scope.scope IS 'the scope, see `scopes`; empty where none is named';
COMMENT ON COLUMN work_by_scope.share IS 'flops over those of the module';
COMMENT ON COLUMN work_by_scope.instructions IS 'different instructions among them';

CREATE OR REPLACE VIEW internal.work_by_pass AS
SELECT
    work.module_id,
    work.pass,
    CAST(SUM(work.flops) AS BIGINT) AS flops,
    SUM(work.flops)
    / NULLIF(SUM(SUM(work.flops)) OVER (PARTITION BY work.module_id), 0) AS share,
    modules.unknown_loops
FROM internal.work
INNER JOIN modules ON modules.module_id = work.module_id
GROUP BY work.module_id, work.pass, modules.unknown_loops;

CREATE OR REPLACE VIEW work_by_pass AS
SELECT
    dumped.*,
    work_by_pass.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.work_by_pass ON work_by_pass.module_id = dumped.module_id;
COMMENT ON VIEW work_by_pass IS
'How much each pass computes: the pass rematerialised is work that is done again to save memory.

A row per dump and pass with a dot or convolution.

Key: dump_id, pass.';
COMMENT ON COLUMN work_by_pass.share IS 'flops over those of all passes';

CREATE OR REPLACE VIEW internal.work_trends AS
WITH recomputed AS (
    SELECT module_id, CAST(SUM(flops) AS BIGINT) AS flops
    FROM internal.work
    WHERE pass = 'rematerialised'
    GROUP BY module_id
)

SELECT
    dumps.run_id,
    runs.run_at,
    lineages.branch,
    lineages.suite,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    history.series_id,
    modules.flops,
    COALESCE(recomputed.flops, 0) AS recomputed_flops,
    modules.unknown_loops,
    compared.flops AS previous_flops,
    modules.flops - compared.flops AS change_flops,
    (modules.flops - compared.flops) / NULLIF(compared.flops, 0) AS change_ratio,
    history.cause,
    previous.run_id AS previous_run_id,
    dumps.dump_id,
    dumps.module_id
FROM history
INNER JOIN dumps ON dumps.dump_id = history.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
INNER JOIN lineages ON lineages.run_id = dumps.run_id
INNER JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN recomputed ON recomputed.module_id = dumps.module_id
LEFT JOIN dumps AS previous ON previous.dump_id = history.compared_dump_id
LEFT JOIN modules AS compared ON compared.module_id = previous.module_id
WHERE modules.flops IS NOT NULL;

CREATE OR REPLACE VIEW work_trends AS
SELECT
    dumped.*,
    work_trends.* EXCLUDE (
        run_id, run_at, branch, suite, workload, module_name, platform, dump_id, module_id
    )
FROM internal.dumped
INNER JOIN internal.work_trends ON work_trends.dump_id = dumped.dump_id;
COMMENT ON VIEW work_trends IS
'How much each program computes, from run to run, and how much of it again.

A row per dump with HLO text. A dump is compared with the dump that `trends` compares it with.
Flops that change without another batch are work that is recomputed, or no longer: see
`recomputed_flops`, which is that of the pass rematerialised in `work_by_pass`.

Key: dump_id.';
COMMENT ON COLUMN work_trends.recomputed_flops IS
'those of them that the backward pass computes again';
COMMENT ON COLUMN work_trends.previous_flops IS
'flops in previous_run_id; null if there is no such run, or no HLO text there';
COMMENT ON COLUMN work_trends.change_flops IS 'flops - previous_flops';
COMMENT ON COLUMN work_trends.change_ratio IS
'change_flops over previous_flops; null if that is 0';
