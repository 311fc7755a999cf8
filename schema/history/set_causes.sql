-- Set the causes to those of the table `renewed`.
UPDATE history
SET cause = renewed.cause
FROM renewed
WHERE history.dump_id = renewed.b_dump_id
