"""Collectives by NCCL."""
