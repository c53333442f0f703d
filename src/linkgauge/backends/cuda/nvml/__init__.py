"""Reads facts about NVIDIA GPUs from NVML, NVIDIA's management library."""
