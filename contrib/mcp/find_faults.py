"""Asks `linkgauge mcp` what is wrong with machines, and prints a line of JSON for each.

    python find_faults.py node1.tgz results/nvidia-h200/nightly/20261124T020000Z nccl.log

Each argument is a capture of a machine, a run of linkgauge, or the output of another tool. Needs
the package `mcp`; LINKGAUGE names the command, if it is not in the PATH. At most three calls answer
what is wrong; an agent would make the same ones.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters

SERVER = StdioServerParameters(
    command=os.environ.get("LINKGAUGE", "linkgauge"), args=["mcp"], env=dict(os.environ)
)
GRAVE = ("fail", "warn")


def calls(path):
    """What to call, the likeliest first: a refusal says that the file is of another kind."""
    ways = [("doctor", {"root": path}), ("show", {"run": path}), ("judge", {"files": [path]})]
    is_run = path.endswith("run.json") or Path(path, "run.json").exists()
    is_text = Path(path).is_file() and not path.endswith((".tgz", ".tar.gz", ".json"))
    return ways[1:] if is_run else ways[2:] if is_text else ways


def faults(answer):
    """The grave findings about a machine, or the cells that are low where nothing explains them."""
    found = [one for one in answer["findings"] if one["severity"] in GRAVE]
    if found:
        return [{name: one[name] for name in ("severity", "check", "subject", "found")}
                for one in found]  # fmt: skip
    return [{name: cell[name] for name in ("status", "benchmark", "row", "column", "verdict")}
            for cell in answer.get("cells", ())]  # fmt: skip


async def examine(client, path):
    made = 0
    for tool, arguments in calls(path):
        made += 1
        result = await client.call_tool(tool, arguments)
        if not result.is_error:
            answer = result.structured_content
            wrong = faults(answer)
            return {"machine": path, "calls": made, "verdict": answer["verdict"], "faults": wrong}
    return {"machine": path, "calls": made, "error": result.content[0].text}


async def main(paths):
    async with Client(SERVER) as client:
        for path in paths:
            print(json.dumps(await examine(client, path)), flush=True)


asyncio.run(main(sys.argv[1:]))
