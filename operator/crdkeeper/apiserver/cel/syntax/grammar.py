"""The words that are not names in CEL, and the precedence of its operators (cel-go's CEL.g4)."""

from typing import Final

from crdkeeper.apiserver.cel.syntax.nodes import Op

RESERVED: Final = frozenset(
    (
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    )
)
RELATION, _ADDITION, _MULTIPLICATION = 1, 2, 3
BINARY: Final[dict[str, tuple[int, str]]] = {
    "<": (RELATION, Op.LESS),
    "<=": (RELATION, Op.LESS_EQUALS),
    ">": (RELATION, Op.GREATER),
    ">=": (RELATION, Op.GREATER_EQUALS),
    "==": (RELATION, Op.EQUALS),
    "!=": (RELATION, Op.NOT_EQUALS),
    "in": (RELATION, Op.IN),
    "+": (_ADDITION, Op.ADD),
    "-": (_ADDITION, Op.SUBTRACT),
    "*": (_MULTIPLICATION, Op.MULTIPLY),
    "/": (_MULTIPLICATION, Op.DIVIDE),
    "%": (_MULTIPLICATION, Op.MODULO),
}
"""The level and the function of each binary operator."""
