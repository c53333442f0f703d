"""The report of runs as a page (HTML) and as a document (PDF).

`sections/` is a registry: each of its modules has a `SECTION`, which turns what was read into
`blocks`. `html.py` and `pdf.py` show blocks and know no section; `drawing.py` makes pictures of
charts.
"""
