"""What other tools measure between two ranks."""

from __future__ import annotations

from typing import Literal, get_args

OutsideOperation = Literal[
    "iperf3",
    "ib_write_bw", "ib_write_bw --use_cuda", "ib_write_bw --use_cuda_dmabuf",
    "ib_read_bw", "ib_read_bw --use_cuda", "ib_read_bw --use_cuda_dmabuf",
    "ib_write_lat", "ib_write_lat --use_cuda", "ib_write_lat --use_cuda_dmabuf",
    "ib_read_lat", "ib_read_lat --use_cuda", "ib_read_lat --use_cuda_dmabuf",
    "ib_send_lat", "ib_send_lat --use_cuda", "ib_send_lat --use_cuda_dmabuf",
]  # fmt: skip
"""Other tools, which move bytes of their own between two ranks, and what they are told of memory:
that of GPU 0 which the driver lends (nvidia-peermem), or as a DMA buffer; else the host's."""
OUTSIDE: tuple[OutsideOperation, ...] = get_args(OutsideOperation)
