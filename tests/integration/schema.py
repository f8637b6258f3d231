# SPDX-License-Identifier: Apache-2.0
"""The schemas of kvpoolctl's JSON: which members there are, and of which type.

A schema is a type, a tuple of types (None: null), a list with the schema of its items, or a dict of members, all of which
must be there and no other. SECONDS may be written without a fraction.
"""
SECONDS = (int, float)
TEXT = (str, None)

COUNTERS = dict.fromkeys((
    "lookups", "lookup_tokens", "hit_tokens", "miss_tokens", "cross_client_hit_tokens", "raced_lookups",
    "published_blocks", "duplicate_blocks", "busy_blocks", "full_blocks", "evicted_blocks", "flushed_blocks",
    "quarantined_blocks", "extents_taken", "waits", "waits_served", "waits_timed_out", "checksum_reports",
    "checksum_dooms", "touches_lost", "connects", "ended_clean", "ended_crash", "ended_kicked", "ended_protocol",
    "ended_slow", "refused", "protocol_errors"), int)
STATES = dict.fromkeys(("cached", "leased", "writing", "quarantined", "doomed", "free", "unassigned"), int)
PART = {"version": str, "protocol_min": int, "protocol_max": int, "layout": int}

SCHEMAS = {
    "kvpool.status/1": {
        "version": str, "instance": TEXT, "domain": TEXT, "pid": int, "epoch": int, "ready": bool,
        "uptime_seconds": SECONDS, "blocks": int, "max_blocks": int, "namespaces": int, "clients": int,
        "draining_clients": int, "since_start": COUNTERS, "health": {"level": str, "codes": [str]},
        "tiers": [{"tier": str, "capacity_bytes": int, "used_bytes": int, "resident_bytes": int, "page_size": TEXT,
                   "states": STATES}],
    },
    "kvpool.namespaces/1": {"namespaces": [{
        "namespace": int, "model": TEXT, "fingerprint": TEXT, "block_tokens": int, "block_bytes": int, "blocks": int,
        "cached_tokens": int, "cached_bytes": int, "leased_blocks": int, "writing_blocks": int, "extents": int,
        "extent_bytes": int, "lookups": int, "lookup_tokens": int, "hit_tokens": int, "idle_seconds": (int, float, None),
    }]},
    "kvpool.clients/1": {"clients": [{
        "session": int, "name": TEXT, "pid": int, "uid": int, "unit": TEXT, "namespace": TEXT, "age_seconds": SECONDS,
        "leases": int, "leased_bytes": int, "writing_blocks": int, "cached_blocks": int, "cached_bytes": int,
        "lookup_tokens": int, "hit_tokens": int, "cross_client_hit_tokens": int, "library": TEXT, "state": TEXT,
    }]},
    "kvpool.flush/1": {"namespace": TEXT, "dry_run": bool, "namespaces": int, "freed_blocks": int, "freed_bytes": int,
                       "kept_blocks": int, "voided_blocks": int},
    "kvpool.ping/1": {"socket": str, "seconds": SECONDS, "uptime_seconds": SECONDS},
    "kvpool.version/1": {"kvpoolctl": PART, "libkvpool": str, "kvpoold": (PART, None)},
}


def is_one(value, schema):
    """A bool is no int here."""
    if schema is None:
        return value is None
    if isinstance(schema, dict):
        return isinstance(value, dict) and not list(differences(value, schema, ""))
    return type(value) is schema  # pylint: disable=unidiomatic-typecheck


def differences(value, schema, where):
    """What is wrong with a value, a line each."""
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            yield f"{where}: is no object"
            return
        for name in sorted(set(value) | set(schema)):
            if name not in value:
                yield f"{where}.{name}: is missing"
            elif name not in schema:
                yield f"{where}.{name}: is not in the schema"
            else:
                yield from differences(value[name], schema[name], f"{where}.{name}")
    elif isinstance(schema, list):
        if not isinstance(value, list):
            yield f"{where}: is no list"
            return
        for i, item in enumerate(value):
            yield from differences(item, schema[0], f"{where}[{i}]")
    elif not any(is_one(value, s) for s in (schema if isinstance(schema, tuple) else (schema,))):
        yield f"{where}: {value!r} has another type"


def check(document):
    """Differences between what kvpoolctl printed and the schema that it says it follows."""
    name = document.get("schema")
    if name not in SCHEMAS:
        return [f"there is no schema {name!r}"]
    return list(differences(document, {"schema": str, **SCHEMAS[name]}, name))
