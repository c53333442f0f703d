"""Processes that work for this one, or beside it: `process` starts one, `child` runs in it,
`channel` carries their messages, `wire` those between hosts; `launch` says how mpirun started
this one."""
