-- The dumps, apart from where they lie: a host's workloads are within that of the host.
--
-- A row per dump. Without a host the folder is the workload as it is.
CREATE VIEW _host_dumps AS
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
CREATE VIEW _usual_dumps AS
WITH alike AS (
    SELECT
        *,
        COUNT(*) OVER (
            PARTITION BY run_id, workload, module_name, platform, occurrence, module_id, flags_id
        ) AS hosts_alike,
        COUNT(host) OVER (
            PARTITION BY run_id, workload, module_name, platform, occurrence
        ) AS hosts
    FROM _host_dumps
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

-- The hosts that differ from most: another program, other flags, or no program at all.
--
-- A row per run, program and host that differs; none where all hosts of a run have the same. Hosts
-- are those that `memhouse ingest --host` named, and a program is told by its workload within the
-- host, its name, platform and occurrence. What more than half of the hosts lack, only few have.
--
-- Key: run_id, workload, module_name, platform, occurrence, host.
--
-- workload: the dump's folder within the host, `.` if none
-- host: the host that differs
-- differs_in: program; text, of the same program: names, source lines or constants; flags; status,
--     for example a file that could not be read; missing: most hosts have the program; only here:
--     most have not
-- peak_bytes: of the host's program, in memory space 0
-- usual_peak_bytes: of the program that most hosts have
-- usual_host: the first of the hosts that have it, to compare with
-- status: of the host's dump; null if it has none
-- dump_id: the host's dump; null if it has none
-- module_id: the host's module; null if it has none
-- usual_module_id: the module that most hosts have
CREATE VIEW differing_hosts AS
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
    FROM _usual_dumps AS most
    INNER JOIN run_parts ON run_parts.run_id = most.run_id AND run_parts.host IS NOT NULL
    LEFT JOIN _host_dumps AS own
        ON own.run_id = most.run_id
            AND own.workload = most.workload
            AND own.module_name = most.module_name
            AND own.platform IS NOT DISTINCT FROM most.platform
            AND own.occurrence = most.occurrence
            AND own.host = run_parts.host
)

SELECT
    compared.run_id,
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
    COALESCE(_dumped.is_latest, FALSE) AS is_latest,
    COALESCE(_dumped.is_entry, FALSE) AS is_entry,
    compared.dump_id,
    compared.module_id,
    compared.usual_module_id
FROM compared
LEFT JOIN _dumped ON _dumped.dump_id = compared.dump_id
WHERE compared.differs_in IS NOT NULL;

-- The programs of each run, once for all of its hosts.
--
-- A row per run and program, whichever number of hosts dumped it; `dumps` has a row for each host,
-- and `differing_hosts` those that differ. Programs are told as there. What was ingested without
-- `--host` has a row per dump.
--
-- Key: run_id, workload, module_name, platform, occurrence.
--
-- workload: the folder within that of a host, `.` if none
-- hosts: how many hosts have the program; 0 where no host was named
-- differing: how many hosts differ, those that lack it included
-- peak_bytes: of the program that most hosts have, in memory space 0
-- dump_id: the dump of the first host that has what most hosts have
-- module_id: the module that most hosts have; null if nothing was readable
CREATE VIEW run_programs AS
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
FROM _usual_dumps AS most
LEFT JOIN counted
    ON counted.run_id = most.run_id
        AND counted.workload = most.workload
        AND counted.module_name = most.module_name
        AND counted.platform IS NOT DISTINCT FROM most.platform
        AND counted.occurrence = most.occurrence;
