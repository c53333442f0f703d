"""What the site's pages need of Python-Markdown beside its own extensions (mkdocs.yml)."""

import re

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

ROW = re.compile(r"^\|.*\\\|.*$")
CODE = re.compile(r"`[^`]+`")


class PipePreprocessor(Preprocessor):
    """Shows a pipe in a table's code without the backslash that GitHub wants there."""

    def run(self, lines: list[str]) -> list[str]:
        return [
            CODE.sub(lambda found: found[0].replace("\\|", "|"), line) if ROW.match(line) else line
            for line in lines
        ]


class PipeExtension(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.register(PipePreprocessor(md), "pipes", 5)


def makeExtension() -> Extension:  # noqa: N802
    return PipeExtension()
