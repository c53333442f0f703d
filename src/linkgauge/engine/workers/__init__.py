"""Worker processes. The `supervisor` starts a `process` for each backend, which runs `child` and in
it a `worker`; `messages` are the messages between them, `patience` has the deadlines.
"""
