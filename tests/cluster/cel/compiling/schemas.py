"""The schema for generated expressions: every type that a structural schema can declare."""

from typing import Any, Final

TEXT: Final = {"type": "string"}
SELF: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["s", "o"],
    "properties": {
        "s": TEXT,
        "sb": {"type": "string", "maxLength": 10},
        "se": {"type": "string", "enum": ["a", "bcd", "é"]},
        "i": {"type": "integer"},
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "by": {"type": "string", "format": "byte", "maxLength": 100},
        "dt": {"type": "string", "format": "date-time"},
        "da": {"type": "string", "format": "date"},
        "du": {"type": "string", "format": "duration"},
        "ios": {"x-kubernetes-int-or-string": True, "maxLength": 5},
        "iosu": {"x-kubernetes-int-or-string": True},
        "ls": {"type": "array", "items": TEXT},
        "lsb": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10}},
        "li": {"type": "array", "maxItems": 10, "items": {"type": "integer"}},
        "ln": {"type": "array", "maxItems": 6, "items": {"type": "number"}},
        "lb": {"type": "array", "maxItems": 6, "items": {"type": "boolean"}},
        "ldu": {"type": "array", "maxItems": 6, "items": {"type": "string", "format": "duration"}},
        "ldt": {"type": "array", "maxItems": 6, "items": {"type": "string", "format": "date-time"}},
        "lby": {
            "type": "array",
            "maxItems": 6,
            "items": {"type": "string", "format": "byte", "maxLength": 9},
        },
        "lli": {
            "type": "array",
            "maxItems": 4,
            "items": {"type": "array", "maxItems": 3, "items": {"type": "integer"}},
        },
        "lo": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "maxLength": 5},
                    "tags": {"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 7}},
                    "other": {"type": "array", "maxItems": 2, "items": {"type": "string", "maxLength": 3}},
                    "nested": {"type": "object", "properties": {"x": {"type": "integer"}}},
                },
            },
        },
        "ms": {"type": "object", "additionalProperties": TEXT},
        "mb": {
            "type": "object",
            "maxProperties": 4,
            "additionalProperties": {"type": "string", "maxLength": 6},
        },
        "ml": {
            "type": "object",
            "maxProperties": 3,
            "additionalProperties": {"type": "array", "maxItems": 8, "items": {"type": "integer"}},
        },
        "mo": {
            "type": "object",
            "maxProperties": 2,
            "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer"}}},
        },
        "o": {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "y": {"type": "string", "maxLength": 8},
                "z": {"type": "object", "properties": {"q": TEXT}},
            },
        },
        "emb": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "pu": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "untyped": {"x-kubernetes-preserve-unknown-fields": True},
        "nul": {"type": "string", "nullable": True, "maxLength": 4},
        "a-b.c/d": {"type": "string", "maxLength": 4},
        "namespace": {"type": "string", "maxLength": 4},
        "__x": {"type": "string", "maxLength": 4},
        "1bad": TEXT,
    },
}
