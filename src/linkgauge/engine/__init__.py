"""Turns a request into a plan (`session`), measures it (`controller`), stores the run (`kept/`)."""
