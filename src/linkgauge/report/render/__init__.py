"""Renders blocks as text for a terminal, HTML, PDF and Markdown. Renderers do not know sections."""
