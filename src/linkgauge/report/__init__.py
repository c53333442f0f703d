"""Shows results: `sections/` makes blocks, `render/` shows blocks, `words/` makes sentences."""
