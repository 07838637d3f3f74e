"""The signatures of all functions that an expression can call, as Kubernetes 1.37 declares them.

One line is one overload: its id, then `(arguments) -> result`, with the type of the target before the
parenthesis if it is called as a member. Capital letters are type parameters. The ids are those of cel-go and
k8s.io/apiserver; the cost estimate goes by them. Sources: cel-go common/stdlib,
ext/{strings,lists,sets,comprehensions}.go, cel/library.go; k8s.io/apiserver pkg/cel/library and
pkg/cel/environment/base.go.
"""

from typing import Final

from crdkeeper.apiserver.cel.syntax.nodes import MAP_INSERT, Op

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_DISPLAY = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}

_COMPARISONS = """
    {0}_bool (bool, bool) -> bool
    {0}_int64 (int, int) -> bool
    {0}_int64_double (int, double) -> bool
    {0}_int64_uint64 (int, uint) -> bool
    {0}_uint64 (uint, uint) -> bool
    {0}_uint64_double (uint, double) -> bool
    {0}_uint64_int64 (uint, int) -> bool
    {0}_double (double, double) -> bool
    {0}_double_int64 (double, int) -> bool
    {0}_double_uint64 (double, uint) -> bool
    {0}_string (string, string) -> bool
    {0}_bytes (bytes, bytes) -> bool
    {0}_timestamp (timestamp, timestamp) -> bool
    {0}_duration (duration, duration) -> bool
"""
_TIME_OF_DAY = """
    timestamp_to_{0} timestamp() -> int
    timestamp_to_{0}_{1} timestamp(string) -> int
    duration_to_{0} duration() -> int
"""
_DATE = """
    timestamp_to_{0} timestamp() -> int
    timestamp_to_{0}_with_tz timestamp(string) -> int
"""

_STANDARD = {
    Op.CONDITIONAL: "conditional (bool, A, A) -> A",
    Op.AND: "logical_and (bool, bool) -> bool",
    Op.OR: "logical_or (bool, bool) -> bool",
    Op.NOT: "logical_not (bool) -> bool",
    Op.NOT_STRICTLY_FALSE: "not_strictly_false (bool) -> bool",
    Op.EQUALS: "equals (A, A) -> bool",
    Op.NOT_EQUALS: "not_equals (A, A) -> bool",
    Op.ADD: """
        add_bytes (bytes, bytes) -> bytes
        add_double (double, double) -> double
        add_duration_duration (duration, duration) -> duration
        add_duration_timestamp (duration, timestamp) -> timestamp
        add_timestamp_duration (timestamp, duration) -> timestamp
        add_int64 (int, int) -> int
        add_list (list(A), list(A)) -> list(A)
        add_string (string, string) -> string
        add_uint64 (uint, uint) -> uint
    """,
    Op.DIVIDE: """
        divide_double (double, double) -> double
        divide_int64 (int, int) -> int
        divide_uint64 (uint, uint) -> uint
    """,
    Op.MODULO: """
        modulo_int64 (int, int) -> int
        modulo_uint64 (uint, uint) -> uint
    """,
    Op.MULTIPLY: """
        multiply_double (double, double) -> double
        multiply_int64 (int, int) -> int
        multiply_uint64 (uint, uint) -> uint
    """,
    Op.NEGATE: """
        negate_double (double) -> double
        negate_int64 (int) -> int
    """,
    Op.SUBTRACT: """
        subtract_double (double, double) -> double
        subtract_duration_duration (duration, duration) -> duration
        subtract_int64 (int, int) -> int
        subtract_timestamp_duration (timestamp, duration) -> timestamp
        subtract_timestamp_timestamp (timestamp, timestamp) -> duration
        subtract_uint64 (uint, uint) -> uint
    """,
    Op.LESS: _COMPARISONS.format("less"),
    Op.LESS_EQUALS: _COMPARISONS.format("less_equals"),
    Op.GREATER: _COMPARISONS.format("greater"),
    Op.GREATER_EQUALS: _COMPARISONS.format("greater_equals"),
    Op.INDEX: """
        index_list (list(A), int) -> A
        index_map (map(A, B), A) -> B
        optional_list_index_int (optional(list(V)), int) -> optional(V)
        optional_map_index_value (optional(map(K, V)), K) -> optional(V)
    """,
    Op.IN: """
        in_list (A, list(A)) -> bool
        in_map (A, map(A, B)) -> bool
    """,
    "size": """
        size_bytes (bytes) -> int
        bytes_size bytes() -> int
        size_list (list(A)) -> int
        list_size list(A)() -> int
        size_map (map(A, B)) -> int
        map_size map(A, B)() -> int
        size_string (string) -> int
        string_size string() -> int
    """,
    "type": "type (A) -> type(A)",
    "bool": """
        bool_to_bool (bool) -> bool
        string_to_bool (string) -> bool
    """,
    "bytes": """
        bytes_to_bytes (bytes) -> bytes
        string_to_bytes (string) -> bytes
    """,
    "double": """
        double_to_double (double) -> double
        int64_to_double (int) -> double
        string_to_double (string) -> double
        uint64_to_double (uint) -> double
    """,
    "duration": """
        duration_to_duration (duration) -> duration
        string_to_duration (string) -> duration
    """,
    "dyn": "to_dyn (A) -> dyn",
    "int": """
        int64_to_int64 (int) -> int
        double_to_int64 (double) -> int
        duration_to_int64 (duration) -> int
        string_to_int64 (string) -> int
        timestamp_to_int64 (timestamp) -> int
        uint64_to_int64 (uint) -> int
    """,
    "string": """
        string_to_string (string) -> string
        bool_to_string (bool) -> string
        bytes_to_string (bytes) -> string
        double_to_string (double) -> string
        duration_to_string (duration) -> string
        int64_to_string (int) -> string
        timestamp_to_string (timestamp) -> string
        uint64_to_string (uint) -> string
        ip_to_string (net.IP) -> string
        cidr_to_string (net.CIDR) -> string
    """,
    "timestamp": """
        timestamp_to_timestamp (timestamp) -> timestamp
        int64_to_timestamp (int) -> timestamp
        string_to_timestamp (string) -> timestamp
    """,
    "uint": """
        uint64_to_uint64 (uint) -> uint
        double_to_uint64 (double) -> uint
        int64_to_uint64 (int) -> uint
        string_to_uint64 (string) -> uint
    """,
    "contains": "contains_string string(string) -> bool",
    "endsWith": "ends_with_string string(string) -> bool",
    "startsWith": "starts_with_string string(string) -> bool",
    "matches": """
        matches (string, string) -> bool
        matches_string string(string) -> bool
    """,
    "getFullYear": _DATE.format("year"),
    "getMonth": _DATE.format("month"),
    "getDayOfYear": _DATE.format("day_of_year"),
    "getDayOfMonth": _DATE.format("day_of_month"),
    "getDate": _DATE.format("day_of_month_1_based"),
    "getDayOfWeek": _DATE.format("day_of_week"),
    "getHours": _TIME_OF_DAY.format("hours", "with_tz"),
    "getMinutes": _TIME_OF_DAY.format("minutes", "with_tz"),
    "getSeconds": _TIME_OF_DAY.format("seconds", "tz"),
    "getMilliseconds": _TIME_OF_DAY.format("milliseconds", "with_tz"),
}

_OPTIONALS = {
    "optional.of": "optional_of (V) -> optional(V)",
    "optional.ofNonZeroValue": "optional_ofNonZeroValue (V) -> optional(V)",
    "optional.none": "optional_none () -> optional(V)",
    "value": "optional_value optional(V)() -> V",
    "hasValue": "optional_hasValue optional(V)() -> bool",
    "or": "optional_or_optional optional(V)(optional(V)) -> optional(V)",
    "orValue": "optional_orValue_value optional(V)(V) -> V",
    Op.OPT_SELECT: "select_optional_field (dyn, string) -> optional(V)",
    Op.OPT_INDEX: """
        list_optindex_optional_int (list(V), int) -> optional(V)
        optional_list_optindex_optional_int (optional(list(V)), int) -> optional(V)
        map_optindex_optional_value (map(K, V), K) -> optional(V)
        optional_map_optindex_optional_value (optional(map(K, V)), K) -> optional(V)
    """,
    "last": "list_last list(V)() -> optional(V)",
    "first": "list_first list(V)() -> optional(V)",
    "optional.unwrap": "optional_unwrap (list(optional(V))) -> list(V)",
    "unwrapOpt": "optional_unwrapOpt list(optional(V))() -> list(V)",
}

_STRINGS = {
    "charAt": "string_char_at_int string(int) -> string",
    "indexOf": """
        list_a_index_of_int list(A)(A) -> int
        string_index_of_string string(string) -> int
        string_index_of_string_int string(string, int) -> int
    """,
    "lastIndexOf": """
        list_a_last_index_of_int list(A)(A) -> int
        string_last_index_of_string string(string) -> int
        string_last_index_of_string_int string(string, int) -> int
    """,
    "lowerAscii": "string_lower_ascii string() -> string",
    "upperAscii": "string_upper_ascii string() -> string",
    "replace": """
        string_replace_string_string string(string, string) -> string
        string_replace_string_string_int string(string, string, int) -> string
    """,
    "split": """
        string_split_string string(string) -> list(string)
        string_split_string_int string(string, int) -> list(string)
    """,
    "substring": """
        string_substring_int string(int) -> string
        string_substring_int_int string(int, int) -> string
    """,
    "trim": "string_trim string() -> string",
    "format": "string_format string(list(dyn)) -> string",
    "strings.quote": "strings_quote (string) -> string",
    "join": """
        list_join list(string)() -> string
        list_join_string list(string)(string) -> string
    """,
    "find": "string_find_string string(string) -> string",
    "findAll": """
        string_find_all_string string(string) -> list(string)
        string_find_all_string_int string(string, int) -> list(string)
    """,
}

_LISTS = {
    "isSorted": "\n".join(f"list_{each}_is_sorted_bool list({each})() -> bool" for each in _COMPARABLE),
    "sum": "\n".join(
        f"list_{each}_sum_{each} list({each})() -> {each}" for each in ("int", "uint", "double", "duration")
    ),
    "max": "\n".join(f"list_{each}_max_{each} list({each})() -> {each}" for each in _COMPARABLE),
    "min": "\n".join(f"list_{each}_min_{each} list({each})() -> {each}" for each in _COMPARABLE),
    "slice": "list_slice list(T)(int, int) -> list(T)",
    "flatten": """
        list_flatten list(list(T))() -> list(T)
        list_flatten_int list(dyn)(int) -> list(dyn)
    """,
    "sort": "\n".join(
        f"list_{_DISPLAY.get(each, each)}_sort list({each})() -> list({each})" for each in _COMPARABLE
    ),
    "@sortByAssociatedKeys": "\n".join(
        f"list_{_DISPLAY.get(each, each)}_sortByAssociatedKeys list(T)(list({each})) -> list(T)"
        for each in _COMPARABLE
    ),
    "lists.range": "lists_range (int) -> list(int)",
    "reverse": "list_reverse list(T)() -> list(T)",
    "distinct": "list_distinct list(T)() -> list(T)",
    "sets.contains": "list_sets_contains_list (list(T), list(T)) -> bool",
    "sets.equivalent": "list_sets_equivalent_list (list(T), list(T)) -> bool",
    "sets.intersects": "list_sets_intersects_list (list(T), list(T)) -> bool",
    MAP_INSERT: """
        @mapInsert_map_key_value (map(K, V), K, V) -> map(K, V)
        @mapInsert_map_map (map(K, V), map(K, V)) -> map(K, V)
    """,
}

_NETWORK = {
    "url": "string_to_url (string) -> kubernetes.URL",
    "isURL": "is_url_string (string) -> bool",
    "getScheme": "url_get_scheme kubernetes.URL() -> string",
    "getHost": "url_get_host kubernetes.URL() -> string",
    "getHostname": "url_get_hostname kubernetes.URL() -> string",
    "getPort": "url_get_port kubernetes.URL() -> string",
    "getEscapedPath": "url_get_escaped_path kubernetes.URL() -> string",
    "getQuery": "url_get_query kubernetes.URL() -> map(string, list(string))",
    "ip": """
        string_to_ip (string) -> net.IP
        cidr_ip net.CIDR() -> net.IP
    """,
    "isIP": "is_ip (string) -> bool",
    "ip.isCanonical": "ip_is_canonical (string) -> bool",
    "family": "ip_family net.IP() -> int",
    "isUnspecified": "ip_is_unspecified net.IP() -> bool",
    "isLoopback": "ip_is_loopback net.IP() -> bool",
    "isLinkLocalMulticast": "ip_is_link_local_multicast net.IP() -> bool",
    "isLinkLocalUnicast": "ip_is_link_local_unicast net.IP() -> bool",
    "isGlobalUnicast": "ip_is_global_unicast net.IP() -> bool",
    "cidr": "string_to_cidr (string) -> net.CIDR",
    "isCIDR": "is_cidr (string) -> bool",
    "containsIP": """
        cidr_contains_ip_string net.CIDR(string) -> bool
        cidr_contains_ip_ip net.CIDR(net.IP) -> bool
    """,
    "containsCIDR": """
        cidr_contains_cidr_string net.CIDR(string) -> bool
        cidr_contains_cidr net.CIDR(net.CIDR) -> bool
    """,
    "prefixLength": "cidr_prefix_length net.CIDR() -> int",
    "masked": "cidr_masked net.CIDR() -> net.CIDR",
}

_FORMATS = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)
_KUBERNETES = {
    "quantity": "string_to_quantity (string) -> kubernetes.Quantity",
    "isQuantity": "is_quantity_string (string) -> bool",
    "sign": "quantity_sign (kubernetes.Quantity) -> int",
    "isGreaterThan": """
        quantity_is_greater_than kubernetes.Quantity(kubernetes.Quantity) -> bool
        semver_is_greater_than kubernetes.Semver(kubernetes.Semver) -> bool
    """,
    "isLessThan": """
        quantity_is_less_than kubernetes.Quantity(kubernetes.Quantity) -> bool
        semver_is_less_than kubernetes.Semver(kubernetes.Semver) -> bool
    """,
    "compareTo": """
        quantity_compare_to kubernetes.Quantity(kubernetes.Quantity) -> int
        semver_compare_to kubernetes.Semver(kubernetes.Semver) -> int
    """,
    "asApproximateFloat": "quantity_get_float kubernetes.Quantity() -> double",
    "asInteger": "quantity_get_int kubernetes.Quantity() -> int",
    "isInteger": "quantity_is_integer kubernetes.Quantity() -> bool",
    "add": """
        quantity_add kubernetes.Quantity(kubernetes.Quantity) -> kubernetes.Quantity
        quantity_add_int kubernetes.Quantity(int) -> kubernetes.Quantity
    """,
    "sub": """
        quantity_sub kubernetes.Quantity(kubernetes.Quantity) -> kubernetes.Quantity
        quantity_sub_int kubernetes.Quantity(int) -> kubernetes.Quantity
    """,
    "semver": """
        string_to_semver (string) -> kubernetes.Semver
        string_bool_to_semver (string, bool) -> kubernetes.Semver
    """,
    "isSemver": """
        is_semver_string (string) -> bool
        is_semver_string_bool (string, bool) -> bool
    """,
    "major": "semver_major kubernetes.Semver() -> int",
    "minor": "semver_minor kubernetes.Semver() -> int",
    "patch": "semver_patch kubernetes.Semver() -> int",
    "validate": "format-validate kubernetes.NamedFormat(string) -> optional(list(string))",
    "format.named": "format-named (string) -> optional(kubernetes.NamedFormat)",
    **{f"format.{name}": f"format.{name} () -> kubernetes.NamedFormat" for name in _FORMATS},
}

_AUTHORIZATION = {
    "path": "authorizer_path Authorizer(string) -> PathCheck",
    "group": "authorizer_group Authorizer(string) -> GroupCheck",
    "serviceAccount": "authorizer_serviceaccount Authorizer(string, string) -> Authorizer",
    "resource": "groupcheck_resource GroupCheck(string) -> ResourceCheck",
    "subresource": "resourcecheck_subresource ResourceCheck(string) -> ResourceCheck",
    "namespace": "resourcecheck_namespace ResourceCheck(string) -> ResourceCheck",
    "name": "resourcecheck_name ResourceCheck(string) -> ResourceCheck",
    "check": """
        pathcheck_check PathCheck(string) -> Decision
        resourcecheck_check ResourceCheck(string) -> Decision
    """,
    "errored": "decision_errored Decision() -> bool",
    "error": "decision_error Decision() -> string",
    "allowed": "decision_allowed Decision() -> bool",
    "reason": "decision_reason Decision() -> string",
    "fieldSelector": "authorizer_fieldselector ResourceCheck(string) -> ResourceCheck",
    "labelSelector": "authorizer_labelselector ResourceCheck(string) -> ResourceCheck",
}
"""Declared everywhere, although nothing in a CRD is an authorizer."""

STORED_ONLY: Final = {"includes": "list_includes_dyn_dyn dyn(dyn) -> bool"}
"""What the server allows in a rule only if the CRD already contained the rule (added in 1.37)."""

SIGNATURES: Final[dict[str, str]] = {
    **_STANDARD,
    **_OPTIONALS,
    **_STRINGS,
    **_LISTS,
    **_NETWORK,
    **_KUBERNETES,
    **_AUTHORIZATION,
}
