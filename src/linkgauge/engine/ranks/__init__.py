"""Runs that several processes measure together, each a rank. Rank 0 controls the run.

`opening` starts the run, and `gathering` finds the ranks. `rank_zero` measures with all ranks
through `worker`; the others run `member` and its `member_loop`. If a rank dies, `member_links`
raises RankLost, and `engine/controller.py` journals the loss as `Run.lost`. If rank 0 dies, each
other rank names it and ends."""
