"""What mkdocs does beside reading the pages (hooks of mkdocs.yml)."""

import re


def on_page_markdown(markdown: str, **_: object) -> str:
    """A pipe in a table's code as the site wants it: GitHub wants it escaped there."""
    rows = re.compile(r"^\|.*\\\|.*$", re.MULTILINE)
    code = re.compile(r"`[^`]+`")
    return rows.sub(
        lambda row: code.sub(lambda found: found[0].replace("\\|", "|"), row[0]), markdown
    )
