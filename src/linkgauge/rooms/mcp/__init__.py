"""Serves verdicts and descriptions of machines to AI agents by the Model Context Protocol."""
