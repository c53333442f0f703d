"""How collectives are carried out by NCCL."""
