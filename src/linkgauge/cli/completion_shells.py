"""Completes words with colons, blanks or special characters in bash and fish, as click cannot."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    add_completion_class,
    split_arg_string,
)

_SPECIAL = re.compile(r"([^\w@%+=:,./-])")
_BASH = """\
%(complete_func)s() {
    local kind value
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_FISH = """\
function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) \\
        COMP_CWORD=(commandline -t) %(prog_name)s 2>/dev/null)
    for completion in $response
        set -l metadata (string split -m 1 "," $completion)
        switch $metadata[1]
            case dir
                __fish_complete_directories $metadata[2]
            case file
                __fish_complete_path $metadata[2]
            case plain
                echo $metadata[2]
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class Cut(NamedTuple):
    """Places in a command line: its last word begins at `word`, and bash replaces the text from
    `replaced` on. `quote` is the quotation mark that is open at the end, or empty."""

    word: int
    replaced: int
    quote: str


def cut(line: str, breaks: str) -> Cut:
    """Finds the last word. Bash replaces only its end, after one of `breaks` outside of quotes."""
    word = replaced = 0
    quote, is_escaped = "", False
    for place, char in enumerate(line, 1):
        if is_escaped:
            is_escaped = False
        elif char == "\\" and quote != "'":
            is_escaped = True
        elif quote:
            if char == quote:
                quote, replaced = "", place
        elif char in "'\"":
            quote, replaced = char, place
        elif char.isspace():
            word = replaced = place
        elif char in breaks:
            replaced = place
    return Cut(word, replaced, quote)


def escaped(text: str, quote: str = "") -> str:
    """Escapes a text for the shell, outside of quotes or within the open quotation mark `quote`."""
    if quote == "'":
        return text.replace("'", r"'\''")
    if quote == '"':
        return re.sub(r'([$`"\\])', r"\\\1", text).replace("!", '"\\!"')
    return _SPECIAL.sub(r"\\\1", text)


class Bash(BashComplete):
    """Completes in bash. Splits the line itself, because bash splits words at colons."""

    source_template = _BASH
    _dropped = 0
    _quote = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("COMP_LINE")
        if line is None:  # a script of an earlier version sends words
            return super().get_completion_args()
        at = cut(line, os.environ.get("COMP_WORDBREAKS", " \t\n\"'@><=;|&(:"))
        words, last = split_arg_string(line[: at.word])[1:], line[at.word :]
        start = at.word
        if last.startswith("-") and "=" in last:  # click proposes what follows
            start += last.index("=") + 1
        self._dropped = len("".join(split_arg_string(line[start : at.replaced])))
        self._quote = at.quote
        return words, "".join(split_arg_string(last))

    def format_completion(self, item: CompletionItem[Any]) -> str:
        if item.type != "plain":
            return super().format_completion(item)
        return f"plain,{escaped(str(item.value)[self._dropped :], self._quote)}"


class Fish(FishComplete):
    """Completes in fish. Leaves commas in proposals as they are, because fish escapes them."""

    source_template = _FISH


add_completion_class(Bash)
add_completion_class(Fish)
