-- Nightly runs made of real modules: what was dumped on which night, and with which module.
--
-- Variables: nights, series, families. `real` is a warehouse of real modules, the current
-- one is new and gets the rows. `copied_module` is left for `copy_module.sql`. What varies
-- comes from hashes, so that all warehouses of as many runs are the same.

-- A family is the modules of a real series. The largest families are taken.
CREATE TEMP TABLE member AS
WITH sized AS (
    SELECT module_id, COUNT(*) AS size FROM real."values" GROUP BY module_id
),
first_dump AS (
    SELECT
        history.series_id, dumps.module_id,
        MIN(dumps.dump_id) AS dump_id, MAX(sized.size) AS size
    FROM real.dumps
    INNER JOIN real.history ON history.dump_id = dumps.dump_id
    INNER JOIN sized ON sized.module_id = dumps.module_id
    WHERE dumps.status = 'ok'
    GROUP BY ALL
),
largest AS (
    SELECT *, MAX(size) OVER (PARTITION BY series_id) AS family_size
    FROM first_dump
)
SELECT
    DENSE_RANK() OVER (ORDER BY family_size DESC, series_id) - 1 AS family,
    ROW_NUMBER() OVER (PARTITION BY series_id ORDER BY module_id) - 1 AS number,
    module_id,
    dump_id
FROM largest
QUALIFY family < getvariable('families');

-- Some workloads come late, some vanish. Each changes its module three to six times. The
-- variable `series` counts a workload once for each of its memory spaces.
CREATE TEMP TABLE planned AS
WITH spaced AS (
    SELECT member.family, COUNT(DISTINCT module_memory.memory_space) AS spaces
    FROM member
    INNER JOIN real.module_memory ON module_memory.module_id = member.module_id
    GROUP BY member.family
),
counted AS (
    SELECT COUNT(*) AS families FROM spaced
)
SELECT
    number,
    number % families AS family,
    3 + number % 4 AS versions,
    CASE WHEN number % 10 = 3 THEN getvariable('nights') // 3 ELSE 0 END AS first_night,
    CASE
        WHEN number % 10 = 7 THEN getvariable('nights') * 2 // 3 ELSE getvariable('nights')
    END AS end_night
FROM range(getvariable('series')) AS workloads (number)
CROSS JOIN counted
INNER JOIN spaced ON spaced.family = number % families
QUALIFY SUM(spaces) OVER (ORDER BY number) <= getvariable('series');

-- A version's module is a member of the family with all sizes times a factor; a fourth version
-- goes back to the one before the last, as a change that is taken back does.
CREATE TEMP TABLE version AS
WITH numbered AS (
    SELECT
        planned.*,
        version,
        CASE WHEN version % 4 = 3 THEN version - 2 ELSE version END AS variant,
        CASE
            WHEN version = 0 THEN 0
            ELSE version * getvariable('nights') // versions
                + hash(number, version) % GREATEST(1, getvariable('nights') // versions)
        END::INTEGER AS from_night
    FROM planned
    CROSS JOIN LATERAL (SELECT UNNEST(range(versions)) AS version)
)
SELECT
    numbered.number,
    numbered.first_night,
    numbered.end_night,
    numbered.from_night,
    COALESCE(
        LEAD(numbered.from_night) OVER (PARTITION BY numbered.number ORDER BY version),
        getvariable('nights')
    ) AS until_night,
    60 + (hash(numbered.number) % 40 + hash(numbered.number, variant) % 12)::INTEGER AS factor,
    (hash('module', numbered.number, variant) >> 1)::BIGINT AS module_id,
    member.module_id AS real_module_id,
    member.dump_id AS real_dump_id
FROM numbered
INNER JOIN member
    ON member.family = numbered.family
    AND member.number = variant % (
        SELECT COUNT(*) FROM member AS other WHERE other.family = numbered.family
    );

-- The compiler's flags change twice, for all alike.
CREATE TEMP TABLE dumped AS
SELECT
    night,
    strftime(DATE '2021-01-01' + night::INTEGER, '%Y-%m-%d') AS run_id,
    version.*,
    hash('fails', number, night) % 97 = 0 AS fails,
    night * 3 // getvariable('nights') AS flags_variant
FROM range(getvariable('nights')) AS nights (night)
INNER JOIN version ON night >= from_night AND night < until_night
-- Now and then a workload is missing.
WHERE night >= first_night AND night < end_night AND hash('misses', number, night) % 50 <> 0;

-- Each module that a dump has, once.
CREATE TEMP TABLE copied_module AS
SELECT module_id, real_module_id, factor, MIN(night) AS first_night
FROM dumped
WHERE NOT fails
GROUP BY ALL;

INSERT INTO runs BY NAME
SELECT
    strftime(night, '%Y-%m-%d') AS run_id,
    night::TIMESTAMPTZ + INTERVAL 5 HOUR AS run_at,
    night - DATE '2021-01-01' + 1 AS run_seq,
    night::TIMESTAMPTZ + INTERVAL 6 HOUR AS ingested_at,
    'dumps/' || run_id AS source,
    'benchmark' AS tool_version
FROM (SELECT DATE '2021-01-01' + UNNEST(range(getvariable('nights')))::INTEGER AS night);

INSERT INTO dumps BY NAME
SELECT dumps.* REPLACE (
    (hash('dump', dumped.number, night) >> 1)::BIGINT AS dump_id,
    dumped.run_id AS run_id,
    format('{}-{:02}', dumps.workload, dumped.number) AS workload,
    1 AS occurrence,
    CASE WHEN NOT fails THEN dumped.module_id END AS module_id,
    CASE
        WHEN NOT fails THEN (hash(files_id, dumped.module_id) >> 1)::BIGINT
    END AS files_id,
    CASE
        WHEN flags_variant = 0 THEN flags_id ELSE (hash(flags_id, flags_variant) >> 1)::BIGINT
    END AS flags_id,
    CASE WHEN fails THEN 'failed' ELSE 'ok' END AS status
)
FROM dumped
INNER JOIN real.dumps ON dumps.dump_id = dumped.real_dump_id
ORDER BY night, dumped.number;

INSERT INTO file_sets BY NAME
WITH sets AS (
    SELECT DISTINCT dumps.files_id, dumped.module_id
    FROM dumped
    INNER JOIN real.dumps ON dumps.dump_id = dumped.real_dump_id
    WHERE NOT fails
)
SELECT file_sets.* REPLACE (
    (hash(sets.files_id, sets.module_id) >> 1)::BIGINT AS files_id,
    sha256(sha256 || sets.module_id) AS sha256
)
FROM sets
INNER JOIN real.file_sets ON file_sets.files_id = sets.files_id
WHERE file_sets.status = 'ok';

-- A variant of a set of flags has another value of its first flag.
INSERT INTO compiler_flags BY NAME
WITH used AS (
    SELECT DISTINCT dumps.flags_id, flags_variant
    FROM dumped
    INNER JOIN real.dumps ON dumps.dump_id = dumped.real_dump_id
)
SELECT
    CASE
        WHEN flags_variant = 0 THEN flags_id ELSE (hash(flags_id, flags_variant) >> 1)::BIGINT
    END AS flags_id,
    flag,
    CASE
        WHEN flags_variant > 0 AND flag = MIN(flag) OVER (PARTITION BY flags_id)
            THEN value || flags_variant
        ELSE value
    END AS value
FROM used
INNER JOIN real.compiler_flags USING (flags_id);
