"""Descriptions of the operations that cells carry out."""
