"""Texts changed like Go, where Python's methods of the same meaning do it otherwise."""


def to_lower(text: str) -> str:
    """A text in lower case (strings.ToLower): each character by itself, and by one character."""
    if text.isascii():
        return text.lower()
    return "".join("i" if each == "\u0130" else each.lower() for each in text)
