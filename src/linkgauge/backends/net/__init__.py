"""Backend `net`: network interfaces that move bytes, by TCP, UCX and RDMA."""
