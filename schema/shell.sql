SET enable_external_access = FALSE;
SET disabled_filesystems = 'LocalFileSystem';
SET lock_configuration = TRUE;
