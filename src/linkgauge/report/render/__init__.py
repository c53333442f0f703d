"""Renders blocks. Each renderer shows a whole document and knows nothing of sections.

`terminal.py` prints, `html.py` and `pdf.py` write pages, `markdown.py` writes text for an issue or
a wiki; `drawing.py` makes pictures of charts."""
