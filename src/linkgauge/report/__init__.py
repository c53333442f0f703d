"""Shows results to people and programs. `sections/` make `blocks`, `render/` shows these on a
terminal, as HTML, PDF and Markdown; `words/` are sentences about figures, findings and runs;
`formats` lists documents and their formats, `tables` and `files` are for programs; `live` shows
a run as it goes on."""
