"""`python -m tusk` is `tusk`."""

from tusk.cli.main import main

main()
