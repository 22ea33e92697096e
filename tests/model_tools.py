"""What tests of models of several kinds share."""


def values(model, X):
    """Return what the model computes, before classes are told from it."""
    return getattr(model, "decision_function", model.predict)(X)


def assert_untouched(model, before):
    """Assert that a model has the attributes that it had: the same objects."""
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
