"""Shows results: `sections/` makes blocks, `render/` shows them, `words/` has sentences."""
