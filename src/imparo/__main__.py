"""``python -m imparo`` is the command ``imparo``."""

from imparo.cli import main

main(prog_name="imparo")
