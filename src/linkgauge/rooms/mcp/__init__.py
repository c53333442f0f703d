"""Serves verdicts on machines, and descriptions, to agents by the Model Context Protocol."""
