"""Captures a machine as files. `capture` records the files that linkgauge reads. `archive` and
`zstd` store them. `file_rules` removes secrets and replaces names, and `anonymizer` makes the
pseudonyms."""
