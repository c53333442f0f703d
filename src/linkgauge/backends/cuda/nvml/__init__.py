"""What NVIDIA's management library, NVML, reports."""
