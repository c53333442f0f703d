"""Collectives by NVIDIA's library of collectives, NCCL."""
