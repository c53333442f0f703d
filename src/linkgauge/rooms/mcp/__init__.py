"""Serves what judges and describes machines to agents, by the Model Context Protocol."""
