"""The runs that are remembered: listed, and how figures went over them."""
