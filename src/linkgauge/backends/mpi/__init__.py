"""Backend `mpi`: MPI moves bytes between the memories of hosts."""
