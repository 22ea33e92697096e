"""Incremental classification is batch least squares on codes, whatever the stream."""

import copy
import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import imparo
from imparo import IncrementalClassifier, RandomFeatures
from imparo.engine import inverse_roots
from imparo.features import NystromMap
from imparo.kernels import Gaussian
from incremental_tools import (
    batch,
    difference,
    differing,
    held_rows,
    plain,
    scores,
    shown,
    stream,
    weights_of,
)

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=30, deadline=None)
PROBE = np.random.default_rng(9).normal(size=(7, 3))


@often
@given(
    seeds,
    st.sampled_from([1.0, 0.99, 0.9]),
    st.sampled_from([(None, 1), (2, 1), (2, 7), (6, 1000), (3, 4)]),
    st.booleans(),
    st.booleans(),
)
def test_after_any_stream_the_model_is_batch_least_squares(
    seed, forgetting, holdout, intercept, weighted
):
    rng = np.random.default_rng(seed)
    n, T, alpha = rng.integers(1, 150), rng.integers(1, 7), rng.random()
    X, y = stream(seed, n, T)
    weight = np.where(rng.random(n) < 0.2, 0, rng.uniform(0.1, 3, n)) if weighted else None
    if weighted:
        weight[0] = 1
    penalty = 10.0 ** rng.integers(-3, 3)
    model = IncrementalClassifier(
        penalty=penalty, recoding=alpha, holdout=holdout[0], holdout_size=holdout[1],
        forgetting=forgetting, intercept=intercept,
    )  # fmt: skip
    order, held = shown(model, X, y, weight)
    assert model.n_held_out_ == len(held)
    own = None if weight is None else weight[order]
    W, counts = batch(
        X[order], y[order], model.classes_, penalty, forgetting=forgetting, weight=own,
        intercept=intercept,
    )  # fmt: skip
    assert_array_equal(model.classes_, np.unique(y))
    assert difference(weights_of(model)[:, int(not intercept) :], W) < 1e-8
    assert_allclose(model.counts_, counts, rtol=1e-10)
    F = scores(W, PROBE) if intercept else PROBE @ W.T
    known = counts > 0
    S = F[:, known] * (counts.sum() / counts[known]) ** alpha
    assert difference(model._scores(PROBE)[:, known], S) < 1e-8
    if len(counts) == 2 and known.all():
        assert difference(model.decision_function(PROBE), S[:, 1] - S[:, 0]) < 1e-8
    elif len(counts) > 2:
        assert difference(model.decision_function(PROBE)[:, known], S) < 1e-8
    best = model.classes_[known][np.argmax(S, axis=1)]
    margins = np.diff(np.sort(S, axis=1)[:, -2:])
    clear = np.ones(len(PROBE), bool) if known.sum() == 1 else margins[:, 0] > 1e-7
    assert_array_equal(model.predict(PROBE)[clear], best[clear])


CONFIGURATIONS = {
    "usual": {},
    "forgetting": {"forgetting": 0.98},
    "in directions": {"forgetting": 0.98, "forgetting_kind": "directional"},
    "drift": {"drift": "forget"},
    "little room": {"holdout": 2, "holdout_size": 12},
    "much room": {"holdout": 2},
    "nothing held": {"holdout": None, "penalty": 1.0, "recoding": 0.7},
    "float32": {"dtype": "float32"},
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
@settings(max_examples=8, deadline=None)
@given(seeds, st.booleans(), st.booleans())
def test_blocks_cut_anywhere_give_the_same_bits(name, seed, weighted, asked):
    """Also where classes appear within a block, errors change, and answers are asked for."""
    rng = np.random.default_rng(seed)
    n, T, columns = rng.integers(100, 500), rng.integers(1, 12), rng.choice([3, 13, 30])
    X, y = stream(seed, n, T, columns)
    y[n // 2 :] = rng.permutation(T)[y[n // 2 :]]  # a drift
    weight = np.where(rng.random(n) < 0.1, 0, rng.uniform(0.1, 3, n)) if weighted else None
    if weighted:
        weight[0] = 1
    one = IncrementalClassifier(**CONFIGURATIONS[name]).fit(X, y, sample_weight=weight)
    cut = IncrementalClassifier(**CONFIGURATIONS[name])
    cuts = np.sort(rng.choice(np.arange(1, n), rng.integers(1, 60), replace=False))
    for part in np.split(np.arange(n), cuts):
        own = None if weight is None else weight[part]
        cut.partial_fit(X[part], y[part], sample_weight=own)
        if asked:
            cut.decision_function(X[:3])
            assert len(cut.coef_) == len(cut.classes_)
    assert differing(one, cut, X[:7]) == []


def test_blocks_cut_anywhere_give_the_same_model_where_it_forgets_at_a_drift():
    X, y = stream(3, 1500, 3, spread=0.2)
    y[700:] = (y[700:] + 1) % 3
    one, cut = (IncrementalClassifier(penalty=1.0, drift="forget") for _ in range(2))
    one.fit(X, y)
    for i in range(0, 1500, 7):
        cut.partial_fit(X[i : i + 7], y[i : i + 7])
    assert len(one.drifts_) > 0
    assert differing(one, cut, PROBE) == []


@often
@given(seeds, st.sampled_from([3, 13, 30]), st.sampled_from(["float64", "float32"]))
def test_answers_change_nothing(seed, columns, dtype):
    """Not even a bit of later answers, while classes appear."""
    X, y = stream(seed, 150, 12, columns)
    quiet, asked = (IncrementalClassifier(dtype=dtype) for _ in range(2))
    for i in range(0, 150, 3):
        for model in (quiet, asked):
            model.partial_fit(X[i : i + 3], y[i : i + 3])
        asked.predict_proba(X[:7])
        asked.predict_one(X[0])
        asked.leverage(X[:7])
    assert differing(quiet, asked, X[:7]) == []


@often
@given(seeds)
def test_names_and_their_order_do_not_matter(seed):
    X, y = stream(seed, 100, 5)
    rng = np.random.default_rng(seed)
    names, turned = np.array(["a", "b", "c", "d", "e"]), rng.permutation(5)
    model = IncrementalClassifier().fit(X, names[y])
    other = IncrementalClassifier().fit(X, names[turned][y])
    named = IncrementalClassifier().partial_fit(X, names[y], classes=names[turned])
    assert_array_equal(other.coef_[turned], model.coef_)
    assert_array_equal(other.counts_[turned], model.counts_)
    assert_array_equal(other._scores(PROBE)[:, turned], model._scores(PROBE))
    assert_allclose(named.coef_, model.coef_, atol=1e-9)
    assert_allclose(named.predict_proba(PROBE), model.predict_proba(PROBE), atol=1e-4)
    assert named.classes_.tolist() == model.classes_.tolist() == sorted(names)


@often
@given(seeds, st.permutations(range(60)))
def test_the_order_of_examples_does_not_matter_where_all_are_learned(seed, order):
    X, y = stream(seed, 60)
    model, other = plain().fit(X, y), plain().fit(X[order], y[order])
    assert difference(other.coef_, model.coef_) < 1e-9
    assert_array_equal(other.counts_, model.counts_)


def test_one_example_of_a_new_class_is_enough_to_be_answered():
    """Here the new class has the only rows with a second column."""
    model = IncrementalClassifier(penalty=0.1, recoding=0.7)
    X = np.array([[1.0, 0], [-1.0, 0]] * 100)
    model.fit(X, ["right", "left"] * 100)
    model.learn_one([0.0, 1.0], "up")
    assert model.predict([[0, 1.0], [1, 0], [-1, 0]]).tolist() == ["up", "right", "left"]
    assert model.classes_.tolist() == ["left", "right", "up"]
    assert model.counts_.tolist()[2] == 1


def test_classes_that_are_named_and_not_shown_are_never_answered():
    X, y = stream(0, 200, 2)
    X = np.vstack([X, 0 * X[:1]])
    y = np.array(["b", "d"])[np.append(y, 0)]
    model = IncrementalClassifier().partial_fit(X, y, classes=["a", "b", "c", "d"])
    bare = IncrementalClassifier().fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    far = 100 * np.random.default_rng(0).normal(size=(500, 3))
    assert_array_equal(model.predict(far), bare.predict(far))
    assert not model.predict_proba(far)[:, [0, 2]].any()
    assert_allclose(model.predict_proba(far)[:, [1, 3]], bare.predict_proba(far), atol=1e-9)
    assert (model.decision_function(far)[:, [0, 2]] == -np.inf).all()
    assert_array_equal(model.coef_[[0, 2]], 0)
    model.partial_fit([[50.0, 50, 50]] * 3, ["c"] * 3)
    assert model.predict([[50.0, 50, 50]]) == "c"


def test_of_two_classes_named_and_one_shown_that_one_is_answered():
    model = IncrementalClassifier().partial_fit([[1.0], [2.0]], [1, 1], classes=[0, 1])
    assert model.decision_function([[-9.0], [9.0]]).tolist() == [np.inf, np.inf]
    assert model.predict([[-9.0], [9.0]]).tolist() == [1, 1]
    model = IncrementalClassifier().partial_fit([[1.0], [2.0]], [0, 0], classes=[0, 1])
    assert model.decision_function([[-9.0], [9.0]]).tolist() == [-np.inf, -np.inf]
    assert model.predict_proba([[9.0]]).tolist() == [[1, 0]]


def test_one_class_alone_is_the_answer_to_everything():
    X, _ = stream(0, 50)
    model = IncrementalClassifier().fit(X, ["only"] * 50)
    assert model.predict(PROBE).tolist() == ["only"] * 7
    assert model.predict_proba(PROBE).tolist() == [[1.0]] * 7
    assert model.decision_function(PROBE).shape == (7, 1)
    assert model.predict_proba_one(PROBE[0]) == {"only": 1.0}


@often
@given(seeds)
def test_weights_are_repetitions(seed):
    X, y = stream(seed, 60)
    times = np.random.default_rng(seed).integers(0, 4, 60)
    times[0] = 1
    model = plain(recoding=0.5).fit(X, y, sample_weight=times)
    again = plain(recoding=0.5)
    again.partial_fit(X.repeat(times, axis=0), y.repeat(times), classes=np.unique(y))
    assert difference(model.coef_, again.coef_) < 1e-9
    assert_array_equal(model.counts_, again.counts_)
    seen = again.counts_ > 0
    assert_allclose(model._scores(PROBE)[:, seen], again._scores(PROBE)[:, seen], atol=1e-8)


@often
@given(seeds, st.integers(1, 250))
def test_copies_and_files_go_on_as_the_model_does(seed, stop):
    X, y = stream(seed, 300, 5)
    model = IncrementalClassifier(holdout=2, holdout_size=30, drift="forget")
    model.fit(X[:stop], y[:stop])
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    model.partial_fit(X[stop:], y[stop:])
    for other in others:
        other.partial_fit(X[stop:], y[stop:])
        assert differing(model, other, PROBE) == []


@pytest.mark.parametrize("stop", [1, 40, 96, 250])
@pytest.mark.parametrize(
    "names", [(0, 1, 2, 3), ("a", "b", "c", "d"), (True, "b", 3, ("x", 1))]
)
def test_a_saved_model_is_the_same_and_goes_on_alike(tmp_path, stop, names):
    X, y = stream(1, 300, 4)
    y = [names[code] for code in y]
    model = IncrementalClassifier(holdout=2, holdout_size=30).fit(X[:stop], y[:stop])
    imparo.save(model, tmp_path / "m")
    loaded = imparo.load(tmp_path / "m")
    assert differing(model, loaded, PROBE) == []
    for one in (model, loaded):
        one.partial_fit(X[stop:], y[stop:])
    assert differing(model, loaded, PROBE) == []


def test_a_deep_copy_shares_nothing():
    X, y = stream(0, 200)
    model = IncrementalClassifier(holdout=2, holdout_size=20).fit(X[:100], y[:100])
    twin = IncrementalClassifier(holdout=2, holdout_size=20).fit(X[:100], y[:100])
    copy.deepcopy(model).partial_fit(X[100:], y[100:]).forget(0)
    assert differing(model, twin, PROBE) == []


def test_fit_forgets_what_was_learned():
    X, y = stream(0, 200)
    model = IncrementalClassifier().fit(X, y)
    model.learn_one(PROBE[0], "another kind")
    model.fit(X[:90, :2], y[:90])
    assert differing(model, IncrementalClassifier().fit(X[:90, :2], y[:90]), PROBE[:, :2]) == []


@pytest.mark.parametrize("columns", [1, 23, 24, 30, 60])
def test_without_numba_the_numbers_are_the_same(monkeypatch, columns):
    X, y = stream(0, 150, 4, columns)
    fast = IncrementalClassifier(penalty=1.0).fit(X, y)
    monkeypatch.setattr(inverse_roots, "compiled", lambda: None)
    slow = IncrementalClassifier(penalty=1.0).fit(X, y)
    assert difference(slow.coef_, fast.coef_) < 1e-12
    assert_array_equal(held_rows(slow), held_rows(fast))
    assert_array_equal(slow.predict(X), fast.predict(X))


def test_feature_maps_are_batch_least_squares_on_features():
    X, y = stream(0, 150)
    kernel = Gaussian(2.0)
    maps = (
        NystromMap(kernel, X[:20]),
        RandomFeatures(sigma=2.0, n_features=30, random_state=0).fit(X).map_,
    )
    for features in maps:
        model = plain(features=features).fit(X, y)
        W, _ = batch(features.transform(X), y, model.classes_, 1.0)
        assert difference(weights_of(model), W) < 1e-8
    transformer = RandomFeatures(sigma=2.0, n_features=30, random_state=0)
    model = plain(features=transformer).fit(X, y)
    W, _ = batch(clone_fitted(transformer, X).transform(X), y, model.classes_, 1.0)
    assert difference(weights_of(model), W) < 1e-8
    assert not hasattr(transformer, "map_")


def clone_fitted(transformer, X):
    return copy.deepcopy(transformer).fit(X)


def test_rows_of_any_form_are_the_same_rows():
    pandas = pytest.importorskip("pandas")
    X, y = stream(0, 100)
    X = np.round(X, 1)
    X[np.abs(X) < 0.5] = 0
    expected = plain().fit(X, y)
    forms = {
        "lists": X.tolist(),
        "by columns": np.asfortranarray(X),
        "reversed twice": X[::-1].copy()[::-1],
        "csr": sparse.csr_matrix(X),
        "csc": sparse.csc_array(X),
        "coo": sparse.coo_matrix(X),
        "pandas": pandas.DataFrame(X, columns=list("abc")),
        "polars": pl.DataFrame(X, schema=list("abc")),
    }
    for name, rows in forms.items():
        model = plain().fit(rows, y)
        assert_array_equal(model.coef_, expected.coef_, err_msg=name)
        assert_array_equal(model.decision_function(rows), expected.decision_function(X), name)
        model.partial_fit(rows, y)
        assert model.n_seen_ == 200, name
    whole = np.round(X).astype(np.int8)
    assert_array_equal(plain().fit(whole, y).coef_, plain().fit(whole * 1.0, y).coef_)
    assert_array_equal(plain().fit(X > 0, y).coef_, plain().fit((X > 0) * 1.0, y).coef_)


def test_arrays_that_may_not_be_written_are_learned_and_none_is_kept():
    X, y = stream(0, 100)
    frozen = X.copy()
    frozen.flags.writeable = False
    model = IncrementalClassifier(intercept=False, holdout=2).fit(frozen, y)
    rows, labels = X.copy(), y.copy()
    other = IncrementalClassifier(intercept=False, holdout=2).fit(rows, labels)
    rows[:], labels[:] = 7, 0
    assert differing(model, other, PROBE) == []


def test_numbers_in_float32_are_computed_with_in_float64_unless_asked():
    X, y = stream(0, 300)
    single = X.astype(np.float32)
    assert plain().fit(single, y).coef_.dtype == np.float64
    assert_array_equal(plain().fit(single, y).coef_, plain().fit(single * 1.0, y).coef_)
    model = IncrementalClassifier(dtype="float32").fit(X, y)
    double = IncrementalClassifier().fit(X, y)
    assert model.coef_.dtype == model.decision_function(PROBE).dtype == np.float32
    assert_allclose(model.coef_, double.coef_, atol=2e-4)
    assert_allclose(model.predict_proba(PROBE), double.predict_proba(PROBE), atol=1e-3)
    assert_allclose(model.predict_proba(PROBE).sum(axis=1), 1, rtol=1e-12)


def test_one_example_at_a_time_by_vectors_lists_and_names():
    X, y = stream(0, 100)
    expected = IncrementalClassifier().fit(X, y)
    kinds = {
        "vectors": lambda x: x,
        "lists": lambda x: x.tolist(),
        "names": lambda x: dict(zip("abc", x.tolist(), strict=True)),
    }
    for kind in kinds.values():
        model = IncrementalClassifier()
        for x, label in zip(X, y, strict=True):
            assert model.learn_one(kind(x), label) is model
        assert differing(model, expected, PROBE) == []
        for x in PROBE:
            answer, chances = model.predict_one(kind(x)), model.predict_proba_one(kind(x))
            assert answer == expected.predict([x])[0]
            assert type(answer) is int
            assert list(chances) == [0, 1, 2, 3]
            assert_allclose(list(chances.values()), expected.predict_proba([x])[0])
    # Names may come in another order, and those that are 0 may be left out.
    x = {"c": 2.0, "a": -1.0}
    assert model.predict_proba_one(x) == model.predict_proba_one([-1.0, 0, 2])
