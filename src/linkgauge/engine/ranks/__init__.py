"""Runs that several processes measure together. Each process is a rank; rank 0 controls the run.

`gathering` connects the ranks. `rank_zero` measures with all ranks through `worker`; the others run
`member` and `member_loop`. If a rank dies, `member_links` raises RankLost, and the loss is
journaled as `Run.lost`. If rank 0 dies, each other rank reports it and ends."""
