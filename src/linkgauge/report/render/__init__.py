"""Renders blocks as text for a terminal, HTML, PDF and Markdown. No renderer knows sections."""
