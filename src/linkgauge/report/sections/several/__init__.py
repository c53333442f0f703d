"""Holds the sections that compare several runs."""
