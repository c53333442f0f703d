"""Backend `mpi`: MPI moves bytes between the host memories of several processes."""
