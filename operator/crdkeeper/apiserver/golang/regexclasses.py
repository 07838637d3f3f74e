"""The names of classes that Go's patterns support: Greek, Lu, [:alpha:] and others (Go 1.26, Unicode 15)."""

_CATEGORIES = (
    *("C", "L", "M", "N", "P", "S", "Z", "Any", "Assigned", "Ascii", "Lc"),
    *(
        kind + detail
        for kind, details in (
            ("C", "cfnos"),
            ("L", "lmotu"),
            ("M", "cen"),
            ("N", "dlo"),
            ("P", "cdefios"),
            ("S", "ckmo"),
            ("Z", "lps"),
        )
        for detail in details
    ),
)

_ALIASES = (
    "Casedletter", "Closepunctuation", "Combiningmark", "Connectorpunctuation", "Control", "Currencysymbol",
    "Dashpunctuation", "Decimalnumber", "Enclosingmark", "Finalpunctuation", "Format", "Initialpunctuation",
    "Letter", "Letternumber", "Lineseparator", "Lowercaseletter", "Mark", "Mathsymbol", "Modifierletter",
    "Modifiersymbol", "Nonspacingmark", "Number", "Openpunctuation", "Other", "Otherletter", "Othernumber",
    "Otherpunctuation", "Othersymbol", "Paragraphseparator", "Privateuse", "Punctuation", "Separator",
    "Spaceseparator", "Spacingmark", "Surrogate", "Symbol", "Titlecaseletter", "Unassigned",
    "Uppercaseletter", "Cntrl", "Digit", "Punct",
)  # fmt: skip

_SCRIPTS = (
    "Adlam", "Ahom", "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Batak", "Bengali", "Bhaiksuki",
    "Bopomofo", "Brahmi", "Braille", "Buginese", "Buhid", "Carian", "Chakma", "Cham", "Cherokee",
    "Chorasmian", "Common", "Coptic", "Cuneiform", "Cypriot", "Cyrillic", "Deseret", "Devanagari", "Dogra",
    "Duployan", "Elbasan", "Elymaic", "Ethiopic", "Georgian", "Glagolitic", "Gothic", "Grantha", "Greek",
    "Gujarati", "Gurmukhi", "Han", "Hangul", "Hanunoo", "Hatran", "Hebrew", "Hiragana", "Inherited",
    "Javanese", "Kaithi", "Kannada", "Katakana", "Kawi", "Kharoshthi", "Khmer", "Khojki", "Khudawadi",
    "Lao", "Latin", "Lepcha", "Limbu", "Lisu", "Lycian", "Lydian", "Mahajani", "Makasar", "Malayalam",
    "Mandaic", "Manichaean", "Marchen", "Medefaidrin", "Miao", "Modi", "Mongolian", "Mro", "Multani",
    "Myanmar", "Nabataean", "Nandinagari", "Newa", "Nko", "Nushu", "Ogham", "Oriya", "Osage", "Osmanya",
    "Palmyrene", "Phoenician", "Rejang", "Runic", "Samaritan", "Saurashtra", "Sharada", "Shavian",
    "Siddham", "Sinhala", "Sogdian", "Soyombo", "Sundanese", "Syriac", "Tagalog", "Tagbanwa", "Takri",
    "Tamil", "Tangsa", "Tangut", "Telugu", "Thaana", "Thai", "Tibetan", "Tifinagh", "Tirhuta", "Toto",
    "Ugaritic", "Vai", "Vithkuqi", "Wancho", "Yezidi", "Yi",
)  # fmt: skip
"""Only single words: Go drops the underscore of Old_Italic and then does not find it."""

_NAMES = frozenset((*_CATEGORIES, *_ALIASES, *_SCRIPTS))

POSIX = frozenset(
    f"[:{sign}{name}:]"
    for sign in ("", "^")
    for name in (
        *("alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph"),
        *("lower", "print", "punct", "space", "upper", "word", "xdigit"),
    )
)
"""The classes of ASCII, as they are written inside of brackets."""


def is_class(name: str) -> bool:
    """Whether there is a class with that name; case, blanks, '_' and '-' do not matter."""
    letters = "".join(each for each in name if each not in " _-")
    return letters.isascii() and letters.capitalize() in _NAMES
