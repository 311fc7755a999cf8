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
