"""Collectives by NCCL, NVIDIA's library of collectives."""
