"""Starts processes that work for this process or beside it, and carries their messages. `process`
starts a process, `child` runs in it, `channel` carries messages. `wire` connects ranks, and
`launch` reads how mpirun started this process."""
