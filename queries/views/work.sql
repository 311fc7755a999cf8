-- The work of each instruction: its FLOPs times how often its computation runs.
--
-- A row per module and instruction that is a dot or convolution.
CREATE VIEW _work AS
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

-- How much each scope computes, in each pass.
--
-- A row per dump, scope and pass with a dot or convolution. The rows of a module add up to
-- `modules`.flops. Each repeated layer has its rows: `scopes`.fold is the same for all of them, but
-- has a row per operation too, so join SELECT DISTINCT module_id, scope, fold FROM scopes.
--
-- Key: dump_id, scope, pass.
--
-- scope: the scope, see `scopes`; empty where none is named
-- share: flops over those of the module
-- instructions: different instructions among them
CREATE VIEW work_by_scope AS
SELECT
    _work.module_id,
    COALESCE(scopes.scope, '') AS scope,
    _work.pass,
    CAST(SUM(_work.flops) AS BIGINT) AS flops,
    SUM(_work.flops)
    / NULLIF(SUM(SUM(_work.flops)) OVER (PARTITION BY _work.module_id), 0) AS share,
    COUNT(*) AS instructions
FROM _work
LEFT JOIN scopes ON scopes.module_id = _work.module_id AND scopes.scope_id = _work.scope_id
GROUP BY _work.module_id, scope, _work.pass;

-- How much each pass computes: the pass rematerialised is work that is done again to save memory.
--
-- A row per dump and pass with a dot or convolution.
--
-- Key: dump_id, pass.
--
-- share: flops over those of all passes
CREATE VIEW work_by_pass AS
SELECT
    _work.module_id,
    _work.pass,
    CAST(SUM(_work.flops) AS BIGINT) AS flops,
    SUM(_work.flops)
    / NULLIF(SUM(SUM(_work.flops)) OVER (PARTITION BY _work.module_id), 0) AS share,
    modules.unknown_loops
FROM _work
INNER JOIN modules ON modules.module_id = _work.module_id
GROUP BY _work.module_id, _work.pass, modules.unknown_loops;

-- How much each program computes, from run to run, and how much of it again.
--
-- A row per dump with HLO text. A dump is compared with the dump that `trends` compares it with.
-- Flops that change without another batch are work that is recomputed, or no longer: see
-- `recomputed_flops`, which is that of the pass rematerialised in `work_by_pass`.
--
-- Key: dump_id.
--
-- recomputed_flops: those of them that the backward pass computes again
-- previous_flops: flops in previous_run_id; null if there is no such run, or no HLO text there
-- change_flops: flops - previous_flops
-- change_pct: change_flops in percent of previous_flops; null if that is 0
CREATE VIEW work_trends AS
WITH recomputed AS (
    SELECT module_id, CAST(SUM(flops) AS BIGINT) AS flops
    FROM _work
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
    CAST(100 AS DOUBLE) * (modules.flops - compared.flops) / NULLIF(compared.flops, 0)
        AS change_pct,
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
