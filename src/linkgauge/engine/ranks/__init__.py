"""Runs that several processes measure together, each a rank. Rank 0 controls the run.

`opening` starts the run, and `gathering` finds the ranks. `rank_zero` measures with all ranks
through `worker`. The other ranks run `member` and its `member_loop`. `commands` has the messages
between them.

If a rank dies, `member_links` notices the loss and raises RankLost. `engine/controller.py` records
the loss in the journal as `Run.lost`, and `report/words/worst.py` shows it. If rank 0 dies, each
other rank names it and ends."""
