"""A machine as files: captured, kept in archives, read back and anonymised."""
