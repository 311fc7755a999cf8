-- The versions of the readers that read the stored modules.
SELECT DISTINCT reader_version FROM modules
