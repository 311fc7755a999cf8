-- Who owns each buffer at a time: a name for every kind of owner that `memhouse owners --by` knows.
--
-- A row per row of `buffers_at` and kind of owner.
CREATE OR REPLACE MACRO internal.owners_at(module, in_space, schedule_time) AS TABLE
SELECT
    buffers.*,
    kinds.owned_by,
    internal.owner_name(kinds.owned_by, buffers) AS owner,
    kinds.owned_by IN ('source', 'innermost', 'scope', 'op', 'pass', 'role')
    AND COALESCE(buffers.origin_rule IN ('operand', 'weak'), FALSE) AS is_guess
FROM buffers_at(module, in_space, schedule_time) AS buffers
CROSS JOIN (
    SELECT
        UNNEST(
            ['source', 'innermost', 'scope', 'op', 'dtype', 'pass', 'category', 'role']
        ) AS owned_by
) AS kinds;

CREATE OR REPLACE MACRO owners_of(module, "by", in_space := NULL, schedule_time := NULL) AS TABLE
SELECT
    owned.memory_space,
    owned.space,
    owned.owner,
    owned.is_guess,
    COUNT(*) AS buffers,
    CAST(SUM(owned.counted_bytes) AS BIGINT) AS counted_bytes,
    SUM(owned.counted_bytes)
    / NULLIF(SUM(SUM(owned.counted_bytes)) OVER (PARTITION BY owned.memory_space), 0) AS share
FROM internal.owners_at(module, in_space, schedule_time) AS owned
WHERE owned.owned_by = CASE
        WHEN "by" IN ('source', 'innermost', 'scope', 'op', 'dtype', 'pass', 'category', 'role')
            THEN "by"
        ELSE
            ERROR(
                'by is one of source, innermost, scope, op, dtype, pass, category, role, not '
                || COALESCE("by", 'null')
            )
    END
GROUP BY owned.memory_space, owned.space, owned.owner, owned.is_guess
ORDER BY owned.memory_space, counted_bytes DESC, owned.owner, owned.is_guess;
COMMENT ON MACRO TABLE owners_of IS
'Who owns a module''s memory at its peak, or at any time: `memhouse owners --by`.

A row per memory space, owner, and whether that is a guess; counted_bytes of a space add up to
what is occupied. Of `scope` each repeated layer has its row. The memory of an argument is its own
at any time, also late in the schedule, when that of a donated one may hold the new weight.

module: a module_id, such as module(''llama-v5e'') finds
by: source, innermost, scope, op, dtype, pass, category or role
in_space: a memory space by name or number, ''hbm'' or 0; all if it is left out
schedule_time: a position in the schedule; the peak of each space if it is left out
owner: the owner of that kind, as text; in brackets what has none
is_guess: the origin is a guess: origin_rule is operand or weak
counted_bytes: what the buffers add to what is occupied at the time
share: counted_bytes over what is occupied then in the space';

-- The frames that call each Python frame of a module, up to so many outwards.
--
-- A row per frame and caller; depth is 1 for the caller that is nearest. at_line is a file and a
-- line such as model.py:112, null for all frames.
CREATE OR REPLACE MACRO internal.callers(module, at_line, most) AS TABLE
WITH RECURSIVE walked AS (
    SELECT frames.stack_frame_id, 0 AS depth, frames.parent_frame_id AS caller_id
    FROM stack_frames AS frames
    WHERE frames.module_id = module
        AND (at_line IS NULL OR ENDS_WITH('/' || frames.file || ':' || frames.line, '/' || at_line))
    UNION ALL
    SELECT walked.stack_frame_id, walked.depth + 1, frames.parent_frame_id
    FROM walked
    INNER JOIN stack_frames AS frames
        ON frames.module_id = module AND frames.stack_frame_id = walked.caller_id
    WHERE walked.depth < most
)

SELECT
    walked.stack_frame_id,
    walked.depth + 1 AS depth,
    callers."function",
    callers.file,
    callers.line
FROM walked
INNER JOIN stack_frames AS callers
    ON callers.module_id = module AND callers.stack_frame_id = walked.caller_id
WHERE walked.depth < most;

CREATE OR REPLACE MACRO callers_of(module, at_line, in_space := NULL) AS TABLE
SELECT
    at_peak.memory_space,
    at_peak.space,
    callers.stack_frame_id,
    callers.depth,
    callers."function",
    callers.file,
    callers.line,
    COALESCE(at_peak.counted_bytes, 0) AS counted_bytes
FROM internal.callers(module, at_line, 1000) AS callers
LEFT JOIN (
    SELECT
        taken.memory_space,
        taken.space,
        taken.stack_frame_id,
        CAST(SUM(taken.counted_bytes) AS BIGINT) AS counted_bytes
    FROM buffers_at(module, in_space, NULL) AS taken
    GROUP BY taken.memory_space, taken.space, taken.stack_frame_id
) AS at_peak ON at_peak.stack_frame_id = callers.stack_frame_id
ORDER BY
    at_peak.memory_space NULLS LAST, counted_bytes DESC, callers.stack_frame_id, callers.depth;
COMMENT ON MACRO TABLE callers_of IS
'Who calls a line of Python, and what the line''s buffers count at the peak by each way.

A row per memory space, stack that ends in the line, and frame of the stack that calls it. Frames
of a stack repeat its counted_bytes: sum at depth 1. A line may have several stacks: one for each
way and column.

module: a module_id, such as module(''llama-v5e'') finds
at_line: a file and a line, such as ''model.py:112''; of the path any last part will do
in_space: a memory space by name or number, ''hbm'' or 0; all if it is left out
memory_space: XLA''s number of the space; null where the stack has nothing at the peak
stack_frame_id: the frame of the line, with which the stack ends, see `stack_frames`
depth: 1 for the frame that calls the line, 2 for the one that calls that
function: the calling function
file: the Python file of the call
line: the line of the call
counted_bytes: what the buffers of the line and stack add to the space''s peak; 0 if nothing';
