"""A machine as files: `capture` records what its readers read, `archive` and `zstd` keep it, and
`file_rules` removes secrets and replaces names by the pseudonyms of the one `anonymizer`."""
