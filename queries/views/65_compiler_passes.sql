CREATE OR REPLACE VIEW internal.compiler_pass_steps AS
WITH before AS (
    SELECT
        *,
        LAG(instructions) OVER (PARTITION BY module_id ORDER BY step) AS last_instructions,
        LAG(estimated_peak_bytes) OVER (PARTITION BY module_id ORDER BY step) AS last_bytes,
        LAG(digest) OVER (PARTITION BY module_id ORDER BY step) AS last_digest
    FROM compiler_passes
),

touched AS (
    SELECT
        compiler_pass_events.module_id,
        compiler_pass_events.step,
        COUNT(*) AS buffers,
        CAST(SUM("values".size_bytes) AS BIGINT) AS buffer_bytes
    FROM compiler_pass_events
    INNER JOIN "values"
        ON "values".module_id = compiler_pass_events.module_id
            AND "values".value_id = compiler_pass_events.value_id
    WHERE compiler_pass_events.event <> 'program'
    GROUP BY compiler_pass_events.module_id, compiler_pass_events.step
)

SELECT
    before.module_id,
    before.step,
    before.pipeline,
    before.compiler_pass,
    before.instructions,
    before.instructions - before.last_instructions AS change_instructions,
    before.estimated_peak_bytes,
    before.estimated_peak_bytes - before.last_bytes AS change_bytes,
    before.changes,
    COALESCE(touched.buffers, 0) AS buffers,
    COALESCE(touched.buffer_bytes, 0) AS buffer_bytes
FROM before
LEFT JOIN touched ON touched.module_id = before.module_id AND touched.step = before.step
WHERE before.last_digest IS NULL OR before.last_digest <> before.digest OR touched.buffers > 0;

CREATE OR REPLACE VIEW compiler_pass_steps AS
SELECT
    dumped.*,
    compiler_pass_steps.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.compiler_pass_steps ON compiler_pass_steps.module_id = dumped.module_id;
COMMENT ON VIEW compiler_pass_steps IS
'Which passes of the compiler changed a program, its instructions and its estimated peak.

A row per dump and text between two passes that differs from the one before it, in order. Only
dumps of `memhouse record --passes`, or with --xla_dump_hlo_pass_re, have such texts. XLA writes a
text where a pass changed something. The estimate is one for all texts, of programs without a
schedule too, and is compared with itself alone: `peaks` has what the program takes in the end.

Key: dump_id, step.';
COMMENT ON COLUMN compiler_pass_steps.step IS
'XLA''s number of the text, see `compiler_passes`; the final text is one more';
COMMENT ON COLUMN compiler_pass_steps.pipeline IS 'the pipeline of passes; null of the final text';
COMMENT ON COLUMN compiler_pass_steps.compiler_pass IS
'the pass that changed the program; null where the text does not say it';
COMMENT ON COLUMN compiler_pass_steps.instructions IS
'how many there are, those in fusions included';
COMMENT ON COLUMN compiler_pass_steps.change_instructions IS
'instructions - those of the text before; null of the first text';
COMMENT ON COLUMN compiler_pass_steps.estimated_peak_bytes IS
'the most bytes of values at one time, in the text''s order';
COMMENT ON COLUMN compiler_pass_steps.change_bytes IS
'estimated_peak_bytes - that of the text before; null of the first text';
COMMENT ON COLUMN compiler_pass_steps.changes IS
'the opcodes whose counts changed, with the changes';
COMMENT ON COLUMN compiler_pass_steps.buffers IS
'large buffers of the final peak whose instruction the pass made or changed';
COMMENT ON COLUMN compiler_pass_steps.buffer_bytes IS 'what these take in the end';
