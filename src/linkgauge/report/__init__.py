"""Shows results to people and programs. `sections/` makes `blocks` (tables, charts, lines).
`render/` shows blocks on a terminal and writes them as HTML, PDF and Markdown. `words/` makes
sentences about figures, findings and runs. `formats` lists the documents and their formats.
`tables` and `files` write data for programs. `live` shows a run while it is measured."""
