-- Which passes of the compiler changed a program, its instructions and its estimated peak.
--
-- A row per dump and text between two passes that differs from the one before it, in order. Only
-- dumps of `memhouse record --passes`, or with --xla_dump_hlo_pass_re, have such texts. XLA writes
-- a text where a pass changed something. The estimate is one for all texts, of programs without a
-- schedule too, and is compared with itself alone: `peaks` has what the program takes in the end.
--
-- Key: dump_id, step.
--
-- step: XLA's number of the text, see `passes`; the final text is one more
-- pipeline: the pipeline of passes; null of the final text
-- compiler_pass: the pass that changed the program; null where the text does not say it
-- instructions: how many there are, those in fusions included
-- change_instructions: instructions - those of the text before; null of the first text
-- estimated_peak_bytes: the most bytes of values at one time, in the text's order
-- change_bytes: estimated_peak_bytes - that of the text before; null of the first text
-- changes: the opcodes whose counts changed, with the changes
-- buffers: large buffers of the final peak whose instruction the pass made or changed
-- buffer_bytes: what these take in the end
CREATE VIEW pass_steps AS
WITH before AS (
    SELECT
        *,
        LAG(instructions) OVER (PARTITION BY module_id ORDER BY step) AS last_instructions,
        LAG(estimated_peak_bytes) OVER (PARTITION BY module_id ORDER BY step) AS last_bytes,
        LAG(digest) OVER (PARTITION BY module_id ORDER BY step) AS last_digest
    FROM passes
),

touched AS (
    SELECT
        buffer_passes.module_id,
        buffer_passes.step,
        COUNT(*) AS buffers,
        CAST(SUM("values".size_bytes) AS BIGINT) AS buffer_bytes
    FROM buffer_passes
    INNER JOIN "values"
        ON "values".module_id = buffer_passes.module_id
            AND "values".value_id = buffer_passes.value_id
    WHERE buffer_passes.event <> 'program'
    GROUP BY buffer_passes.module_id, buffer_passes.step
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
