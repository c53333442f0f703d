"""The history of runs: SQLite in the user's data folder, or PostgreSQL by URL."""
