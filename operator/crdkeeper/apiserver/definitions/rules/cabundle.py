"""Whether the CA bundle of a conversion webhook is readable, as far as that shows without an X.509 parser."""


class UndecidedBundle(Exception):
    """It contains PEM, so only a certificate parser can tell."""


def ca_bundle_error(bundle: bytes) -> str:
    """The API server's error for a bundle without any PEM. Raises UndecidedBundle.

    See rootCertPool in k8s.io/client-go/transport, which accepts a bundle if one certificate in it is valid.
    """
    if b"-----BEGIN " not in bundle:
        return "unable to load root certificates: unable to parse bytes as PEM block"
    raise UndecidedBundle
