"""Plans a request (`session`), measures the plan (`controller`), and keeps the run (`kept/`)."""
