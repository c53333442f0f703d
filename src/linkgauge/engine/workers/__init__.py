"""Worker processes: a `supervisor` starts a `process` for each backend, which runs a `worker`."""
