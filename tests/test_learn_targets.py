"""What ``imparo learn`` learns: one column or several, named or told by the archive."""

import numpy as np
import pytest
from click.testing import CliRunner

from imparo.cli import main
from imparo.data import Frame
from imparo.tabular import Keeper, open_kept

CHOICES = {"features": 40, "penalty": 0.1}


def table(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.column_stack([np.sin(X[:, 0]) * 50 + 1000, X[:, 1] * X[:, 2]])
    return X, y


def frame(X, y):
    return Frame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "u": y[:, 0], "v": y[:, 1]})


def learn(*arguments, code=0):
    result = CliRunner().invoke(main, ["learn", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def test_two_targets_are_learned_as_each_alone(tmp_path):
    rows = frame(*table())
    with Keeper(tmp_path / "both", ["u", "v"], **CHOICES) as both:
        both.learn(rows[:200])
        both.learn(rows[200:])
        found = both.predict(rows)
        error = both.error
    assert found.shape == (300, 2)
    squares = []
    for j, name in enumerate("uv"):
        other = rows.without(["v" if name == "u" else "u"])
        with Keeper(tmp_path / name, name, **CHOICES) as alone:
            alone.learn(other[:200])
            alone.learn(other[200:])
            np.testing.assert_allclose(found[:, j], alone.predict(other), rtol=1e-9)
            squares.append(alone.error**2)
    assert error == pytest.approx(np.sqrt(np.mean(squares)))
    with open_kept(tmp_path / "both", writable=True) as again:
        np.testing.assert_array_equal(again.predict(rows), found)


def test_several_targets_hold_numbers(tmp_path):
    rows = frame(*table()).with_column("v", np.array(["x", "y"] * 150, object))
    with (
        pytest.raises(ValueError, match="of several targets 'v' holds no numbers"),
        Keeper(tmp_path / "kept", ["u", "v"]) as keeper,
    ):
        keeper.learn(rows)
    assert not (tmp_path / "kept").exists()


def test_a_missing_target_among_several_is_a_bad_row(tmp_path):
    X, y = table()
    y[7, 1] = np.nan
    with Keeper(tmp_path / "kept", ["u", "v"], **CHOICES) as keeper:
        keeper.begin(frame(*table()))
        with pytest.raises(ValueError, match="row 7: the target 'v' is missing"):
            keeper.learn(frame(X, y))
        assert keeper.rows == 0


def test_an_archive_tells_its_target_and_inputs(tmp_path):
    X, y = table()
    np.savez(tmp_path / "t.npz", X=X, Y=y, who=np.arange(300))
    learn(tmp_path / "kept", tmp_path / "t.npz", "--features", "40")
    model = open_kept(tmp_path / "kept")
    assert model.columns == ["X[0]", "X[1]", "X[2]"]
    assert model.outputs == ["Y[0]", "Y[1]"]
    model.close()


def test_arrays_are_named_as_a_whole_and_the_command_goes_on(tmp_path):
    X, y = table()
    np.savez(tmp_path / "log.npz", q=X, tau=y, t=np.arange(300.0))
    asked = [tmp_path / "kept", tmp_path / "log.npz", "--columns", "q", "--features", "40"]
    learn(*asked, "--target", "tau", "--stop-after", "200")
    result = learn(*asked)
    assert "Going on after 200 rows" in result.output
    assert "100 rows, 300 in all" in result.output
    other = learn(tmp_path / "kept", tmp_path / "log.npz", "--columns", "t", code=3)
    assert "was begun with columns" in other.stderr
    wrong = learn(tmp_path / "kept", tmp_path / "log.npz", "--target", "t", code=3)
    assert "learns 'tau[0]' and 'tau[1]', not 't'" in wrong.stderr
