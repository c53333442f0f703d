"""Processes that work for this one, or beside it: started, talked to and ended."""
