"""Worker processes: their commands, their answers, and their supervisor."""
