"""The backend `mpi`, in which MPI moves bytes between the host memories of several processes."""
