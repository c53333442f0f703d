"""Sections that compare several runs."""
