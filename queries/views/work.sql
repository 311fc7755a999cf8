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
-- `modules`.flops.
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
-- unknown_loops: loops whose trip count is not known: their bodies count once
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
