"""Backend `mpi`: the memories of hosts, between which MPI moves bytes."""
