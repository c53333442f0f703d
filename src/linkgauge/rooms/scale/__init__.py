"""A collective over more and more devices, and where it stops to scale."""
