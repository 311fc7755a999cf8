-- The dumps, apart from where they lie: a host's workloads are within that of the host.
--
-- A row per dump. Without a host the folder is the workload as it is.
CREATE OR REPLACE VIEW internal.host_dumps AS
SELECT
    dumps.run_id,
    CASE
        WHEN dumps.host IS NULL THEN dumps.workload
        ELSE COALESCE(NULLIF(SUBSTR(dumps.workload, LENGTH(dumps.host) + 2), ''), '.')
    END AS workload,
    dumps.module_name,
    dumps.platform,
    dumps.occurrence,
    dumps.host,
    dumps.status,
    dumps.module_id,
    dumps.flags_id,
    dumps.dump_id,
    modules.program_id,
    module_memory.peak_bytes
FROM dumps
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0;

-- What most hosts have of each program.
--
-- A row per run and program: the dump of the first host that has the most frequent content.
CREATE OR REPLACE VIEW internal.usual_dumps AS
WITH alike AS (
    SELECT
        *,
        COUNT(*) OVER (
            PARTITION BY run_id, workload, module_name, platform, occurrence, module_id, flags_id
        ) AS hosts_alike,
        COUNT(host) OVER (
            PARTITION BY run_id, workload, module_name, platform, occurrence
        ) AS hosts
    FROM internal.host_dumps
),

of_runs AS (
    SELECT run_id, COUNT(host) AS run_hosts
    FROM run_parts
    GROUP BY run_id
),

ranked AS (
    SELECT
        *,
        ROW_NUMBER() OVER (
            PARTITION BY run_id, workload, module_name, platform, occurrence
            ORDER BY module_id IS NULL, hosts_alike DESC, host
        ) AS place
    FROM alike
)

SELECT
    ranked.*,
    2 * ranked.hosts < COALESCE(of_runs.run_hosts, 0) AS is_of_few
FROM ranked
LEFT JOIN of_runs ON of_runs.run_id = ranked.run_id
WHERE ranked.place = 1;

CREATE OR REPLACE VIEW differing_hosts AS
WITH compared AS (
    SELECT
        most.run_id,
        most.workload,
        most.module_name,
        most.platform,
        most.occurrence,
        run_parts.host,
        CASE
            WHEN own.dump_id IS NULL THEN CASE WHEN NOT most.is_of_few THEN 'missing' END
            WHEN most.is_of_few THEN 'only here'
            WHEN own.module_id IS NULL AND most.module_id IS NOT NULL THEN 'status'
            WHEN own.module_id <> most.module_id AND own.program_id = most.program_id THEN 'text'
            WHEN own.module_id <> most.module_id THEN 'program'
            WHEN COALESCE(own.flags_id, 0) <> COALESCE(most.flags_id, 0) THEN 'flags'
            WHEN own.status <> most.status THEN 'status'
        END AS differs_in,
        own.peak_bytes,
        most.peak_bytes AS usual_peak_bytes,
        most.host AS usual_host,
        own.status,
        own.dump_id,
        own.module_id,
        most.module_id AS usual_module_id
    FROM internal.usual_dumps AS most
    INNER JOIN run_parts ON run_parts.run_id = most.run_id AND run_parts.host IS NOT NULL
    LEFT JOIN internal.host_dumps AS own
        ON own.run_id = most.run_id
            AND own.workload = most.workload
            AND own.module_name = most.module_name
            AND own.platform IS NOT DISTINCT FROM most.platform
            AND own.occurrence = most.occurrence
            AND own.host = run_parts.host
)

SELECT
    compared.run_id,
    runs.run_at,
    lineages.branch,
    lineages.suite,
    compared.workload,
    compared.module_name,
    compared.platform,
    compared.occurrence,
    compared.host,
    compared.differs_in,
    compared.peak_bytes,
    compared.usual_peak_bytes,
    compared.usual_host,
    compared.status,
    COALESCE(dumped.is_latest, FALSE) AS is_latest,
    COALESCE(dumped.is_entry, FALSE) AS is_entry,
    compared.dump_id,
    compared.module_id,
    compared.usual_module_id
FROM compared
INNER JOIN runs ON runs.run_id = compared.run_id
INNER JOIN internal.lineages ON lineages.run_id = compared.run_id
LEFT JOIN internal.dumped ON dumped.dump_id = compared.dump_id
WHERE compared.differs_in IS NOT NULL;
COMMENT ON VIEW differing_hosts IS
'The hosts that differ from most: another program, other flags, or no program at all.

A row per run, program and host that differs; none where all hosts of a run have the same. Hosts
are those that `memhouse ingest --host` named, and a program is told by its workload within the
host, its name, platform and occurrence. What more than half of the hosts lack, only few have.

Key: run_id, workload, module_name, platform, occurrence, host.';
COMMENT ON COLUMN differing_hosts.workload IS 'the dump''s folder within the host, `.` if none';
COMMENT ON COLUMN differing_hosts.host IS 'the host that differs';
COMMENT ON COLUMN differing_hosts.differs_in IS
'program; text, of the same program: names, source lines or constants; flags; status, for example a
file that could not be read; missing: most hosts have the program; only here: most have not';
COMMENT ON COLUMN differing_hosts.peak_bytes IS 'of the host''s program, in memory space 0';
COMMENT ON COLUMN differing_hosts.usual_peak_bytes IS 'of the program that most hosts have';
COMMENT ON COLUMN differing_hosts.usual_host IS
'the first of the hosts that have it, to compare with';
COMMENT ON COLUMN differing_hosts.status IS 'of the host''s dump; null if it has none';
COMMENT ON COLUMN differing_hosts.dump_id IS 'the host''s dump; null if it has none';
COMMENT ON COLUMN differing_hosts.module_id IS 'the host''s module; null if it has none';
COMMENT ON COLUMN differing_hosts.usual_module_id IS 'the module that most hosts have';

CREATE OR REPLACE VIEW internal.run_programs AS
WITH counted AS (
    SELECT run_id, workload, module_name, platform, occurrence, COUNT(*) AS differing
    FROM differing_hosts
    GROUP BY ALL
)

SELECT
    most.run_id,
    most.workload,
    most.module_name,
    most.platform,
    most.occurrence,
    most.hosts,
    COALESCE(counted.differing, 0) AS differing,
    most.peak_bytes,
    most.program_id,
    most.dump_id,
    most.module_id
FROM internal.usual_dumps AS most
LEFT JOIN counted
    ON counted.run_id = most.run_id
        AND counted.workload = most.workload
        AND counted.module_name = most.module_name
        AND counted.platform IS NOT DISTINCT FROM most.platform
        AND counted.occurrence = most.occurrence;

CREATE OR REPLACE VIEW run_programs AS
SELECT
    dumped.* EXCLUDE (workload),
    run_programs.* EXCLUDE (run_id, module_name, platform, dump_id, module_id)
FROM internal.dumped
INNER JOIN internal.run_programs ON run_programs.dump_id = dumped.dump_id;
COMMENT ON VIEW run_programs IS
'The programs of each run, once for all of its hosts.

A row per run and program, whichever number of hosts dumped it; `dumps` has a row for each host,
and `differing_hosts` those that differ. Programs are told as there. What was ingested without
`--host` has a row per dump.

Key: run_id, workload, module_name, platform, occurrence.';
COMMENT ON COLUMN run_programs.workload IS 'the folder within that of a host, `.` if none';
COMMENT ON COLUMN run_programs.hosts IS
'how many hosts have the program; 0 where no host was named';
COMMENT ON COLUMN run_programs.differing IS 'how many hosts differ, those that lack it included';
COMMENT ON COLUMN run_programs.peak_bytes IS
'of the program that most hosts have, in memory space 0';
COMMENT ON COLUMN run_programs.dump_id IS
'the dump of the first host that has what most hosts have';
COMMENT ON COLUMN run_programs.module_id IS
'the module that most hosts have; null if nothing was readable';
