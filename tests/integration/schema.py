# SPDX-License-Identifier: Apache-2.0
"""The schemas of kvpoolctl's JSON, from doc/schemas: as much of JSON Schema as those files use.

The published schemas let members be added; here a member that is in no schema is a difference, so that none is forgotten.
"""
import json
import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../doc/schemas")
WORDS = {"$schema", "$id", "title", "type", "properties", "required", "items", "enum", "const"}
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
         "null": type(None)}


def load(name):
    """The schema of a document that says it is "kvpool.status/1"; None when there is none."""
    path = os.path.join(FOLDER, name.replace("/", ".") + ".json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def is_type(value, name):
    """A bool is no number here."""
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def differences(value, schema, where):
    """What is wrong with a value, a line each."""
    unknown = set(schema) - WORDS
    if unknown:
        yield f"{where}: the schema uses {sorted(unknown)}, which this check does not know"
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, n) for n in names):
        yield f"{where}: {value!r} has another type"
    elif "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    elif "enum" in schema and value is not None and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    elif isinstance(value, dict) and "properties" in schema:
        yield from members(value, schema, where)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from differences(item, schema["items"], f"{where}[{i}]")


def members(value, schema, where):
    known = schema["properties"]
    for name in sorted(set(value) | set(schema["required"])):
        if name not in value:
            yield f"{where}.{name}: is missing"
        elif name not in known:
            yield f"{where}.{name}: is not in the schema"
        else:
            yield from differences(value[name], known[name], f"{where}.{name}")


def check(document):
    """Differences between what kvpoolctl printed and the schema that it says it follows."""
    name = document.get("schema")
    schema = load(name)
    if schema is None:
        return [f"there is no schema {name!r}"]
    return list(differences(document, schema, name))
