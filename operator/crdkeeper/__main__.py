"""`python -m crdkeeper` is `crdkeeper`."""

from crdkeeper.cli import main

main()
