"""How facts about NVIDIA GPUs are read from NVML, NVIDIA's management library."""
