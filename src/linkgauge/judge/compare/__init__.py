"""Runs beside each other: two sides, a baseline, a history; do they differ, and in what?"""
