"""A process that makes pictures of charts: Vega-Lite on stdin, SVG on stdout, a line of JSON each.

V8 takes most of a second to start: it starts while the run is judged and kept. Whatever happens in
it, the report is made.
"""

from __future__ import annotations

import json
import sys

_FIRST = {"mark": "point", "data": {"values": [{"a": 1}]}, "encoding": {}}


def main() -> None:
    import vl_convert

    nothing: list[str] = []  # no chart may fetch anything
    vl_convert.vegalite_to_svg(_FIRST, allowed_base_urls=nothing)
    for line in sys.stdin:
        try:
            svg = vl_convert.vegalite_to_svg(json.loads(line), allowed_base_urls=nothing)
            answer = {"svg": svg}
        except ValueError as error:
            answer = {"error": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
