"""What the tests of devices share."""

from imparo.engine.torch import TorchEngine


def use_blocks_of(monkeypatch, size):
    """Make blocks of rows on a device take so many bytes, also where an engine is kept."""

    def keep(engine, value):
        vars(engine)["block_bytes"] = value  # what it is again after the test

    fixed = property(lambda engine: size, keep)
    monkeypatch.setattr(TorchEngine, "block_bytes", fixed, raising=False)


def name_of(model):
    """Return a name for the report of a test."""
    solver = getattr(model, "solver", "auto")
    return type(model).__name__ + ("" if solver == "auto" else f", {solver}")
