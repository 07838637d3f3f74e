"""What keeper and serving processes say to each other. The keeper's part is the state that serving needs."""

from typing import Final

RULES: Final = "rules"
"""A CRD's name; carries its bundle. With DIGEST."""
DIGEST: Final = "digest"
DROP: Final = "drop"
"""The name of a CRD whose rules are gone."""
CERTIFICATE: Final = "certificate"
"""The length of the certificate; carries certificate and key."""
TOKEN: Final = "token"
"""With which API servers ask about changes of CRDs."""
WHOLE: Final = "whole"
"""All that exists has been sent."""
LEAVE: Final = "leave"
"""Nobody needs conversions any more: the installation is being removed."""

LOOK: Final = "look"
"""A name: look for new rules. The answer has the same ID."""
JUDGE: Final = "judge"
"""Carries an AdmissionReview. The answer has the same ID, STATUS and HEADERS, and carries the body."""
CONVERT: Final = "convert"
"""The length of the rules' bundle; carries that and a ConversionReview for the workers.

With DIGEST, and SOURCE, the client's address.

The answer has the same ID and REPLY, and carries the content, or has the same ID and why there is none:
BAD or FAILED.
"""
SOURCE: Final = "source"
REPLY: Final = "reply"
BAD: Final = "bad"
FAILED: Final = "failed"
FORGET: Final = "forget"
"""The ID of a question whose client is gone. It is answered all the same."""
ID: Final = "id"
STATUS: Final = "status"
HEADERS: Final = "headers"
SERVING: Final = "serving"
"""It accepts connections."""
COUNTED: Final = "counted"
"""Carries what the process has counted so far."""
