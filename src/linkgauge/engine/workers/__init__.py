"""Worker processes. The `supervisor` starts a `process` for each backend, which runs `child` and
in it a `worker`; `messages` are what they say to each other, `patience` is how long one waits.
"""
