"""Moves bytes between ranks by network interfaces, with TCP, UCX and RDMA (backend `net`)."""
