"""Starts processes that work for this process, and exchanges messages with them. `process` starts a
process, `child` runs in it, and `channel` carries the messages. `wire` connects ranks, and `launch`
reads how mpirun started this process."""
