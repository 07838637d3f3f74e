"""Whether the CA bundle of a conversion webhook can be read, as far as that shows without an X.509 parser."""


class UndecidedBundle(Exception):
    """There is PEM in it: what it is worth, only a parser of certificates can tell."""


def ca_bundle_error(bundle: bytes) -> str:
    """The API server's words for a bundle without any PEM. Raises UndecidedBundle.

    See rootCertPool in k8s.io/client-go/transport, which takes a bundle if one certificate in it is good.
    """
    if b"-----BEGIN " not in bundle:
        return "unable to load root certificates: unable to parse bytes as PEM block"
    raise UndecidedBundle
