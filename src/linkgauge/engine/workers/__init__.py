"""Worker processes. The `supervisor` starts a `process` for each backend. The process runs `child`,
and in it a `worker`. `messages` has the messages between controller and worker, and `deadlines` the
deadlines."""
