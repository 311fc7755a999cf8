-- The dumps, apart from where they lie: a host's workloads are within that of the host.
--
-- A row per dump. Without a host the folder is the workload as it is.
CREATE OR REPLACE VIEW internal.host_dumps AS
SELECT
    run_id,
    CASE
        WHEN host IS NULL THEN workload
        ELSE COALESCE(NULLIF(SUBSTR(workload, LENGTH(host) + 2), ''), '.')
    END AS workload,
    dumps.module_name,
    platform,
    occurrence,
    host,
    status,
    module_id,
    flags_id,
    dump_id,
    program_id,
    peak_bytes
FROM dumps
LEFT JOIN modules USING (module_id)
LEFT JOIN module_memory ON module_memory.module_id = dumps.module_id AND memory_space = 0;

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
        COUNT(host) OVER program AS hosts
    FROM internal.host_dumps
    WINDOW program AS (PARTITION BY run_id, workload, module_name, platform, occurrence)
),

of_runs AS (
    SELECT run_id, COUNT(host) AS run_hosts FROM run_parts GROUP BY ALL
)

SELECT
    alike.*,
    2 * hosts < COALESCE(run_hosts, 0) AS is_of_few
FROM alike
LEFT JOIN of_runs USING (run_id)
QUALIFY
    ROW_NUMBER() OVER (
        PARTITION BY alike.run_id, workload, module_name, platform, occurrence
        ORDER BY module_id IS NULL, hosts_alike DESC, host
    ) = 1;

CREATE OR REPLACE VIEW differing_hosts AS
SELECT
    most.run_id,
    runs.run_at,
    lineages.branch,
    lineages.suite,
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
    COALESCE(is_latest, FALSE) AS is_latest,
    COALESCE(is_entry, FALSE) AS is_entry,
    own.dump_id,
    own.module_id,
    most.module_id AS usual_module_id
FROM internal.usual_dumps AS most
INNER JOIN run_parts ON run_parts.run_id = most.run_id AND run_parts.host IS NOT NULL
INNER JOIN runs ON runs.run_id = most.run_id
INNER JOIN internal.lineages ON lineages.run_id = most.run_id
LEFT JOIN internal.host_dumps AS own
    ON own.run_id = most.run_id
        AND own.workload = most.workload
        AND own.module_name = most.module_name
        AND own.platform IS NOT DISTINCT FROM most.platform
        AND own.occurrence = most.occurrence
        AND own.host = run_parts.host
LEFT JOIN internal.dumped ON dumped.dump_id = own.dump_id
WHERE differs_in IS NOT NULL;
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

CREATE OR REPLACE VIEW run_programs AS
SELECT
    dumped.* EXCLUDE (workload),
    most.workload,
    most.occurrence,
    hosts,
    COUNT(differing_hosts.host) AS differing,
    most.peak_bytes,
    program_id
FROM internal.dumped
INNER JOIN internal.usual_dumps AS most USING (dump_id)
LEFT JOIN differing_hosts
    ON differing_hosts.run_id = most.run_id
        AND differing_hosts.workload = most.workload
        AND differing_hosts.module_name = most.module_name
        AND differing_hosts.platform IS NOT DISTINCT FROM most.platform
        AND differing_hosts.occurrence = most.occurrence
GROUP BY ALL;
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
