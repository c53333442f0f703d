"""A run that several processes measure together, each a rank; rank 0 controls it.

`opening` begins; `gathering` finds the ranks; `rank_zero` measures with all of them by `worker`;
`member` and its `member_loop` are what every other rank does; `commands` lists what they say.

A rank's death: `member_links` notices it and raises RankLost; `engine/controller.py` keeps it in
the journal as `Run.lost`; `report/words/worst.py` shows it. If rank 0 dies, or no journal is there
yet, `rank_zero_lost` keeps it.
"""
