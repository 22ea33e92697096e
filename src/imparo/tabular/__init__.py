"""Tables in, models out: what the command line does, for Python."""
