"""`python -m tusk` is `tusk`."""

from tusk.cli import main

main()
