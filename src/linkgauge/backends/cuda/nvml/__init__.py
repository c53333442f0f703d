"""Facts that NVIDIA's management library, NVML, reports."""
