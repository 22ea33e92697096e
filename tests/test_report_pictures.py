"""Pictures of reports show the numbers that they are given."""

import warnings

import numpy as np
import pytest

from imparo.paths import Path
from imparo.reports.drawing import DARK, LIGHT, drawn_in, label, recoloured
from imparo.reports.pictures import (
    confused_pairs,
    deciles,
    draw_agreement,
    draw_class_bars,
    draw_confused_pairs,
    draw_confusion,
    draw_cost,
    draw_deciles,
    draw_learning_curve,
    draw_output_bars,
    draw_path,
    draw_relevance,
    draw_reliability,
    draw_residual_histogram,
    draw_residuals,
    draw_trials,
    reliability,
)
from imparo.tabular.outcome import Cost

figures = pytest.importorskip("matplotlib.figure")


@pytest.fixture(params=[LIGHT, DARK], ids=["light", "dark"])
def theme(request):
    with drawn_in(request.param):
        yield request.param


def drawn(draw, *arguments, **options):
    """Return the figure on which something is drawn, down to its layout."""
    figure = figures.Figure(figsize=(5.6, 3.9), layout="constrained")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        draw(figure, *arguments, **options)
        figure.draw_without_rendering()
    return figure


def path_of(errors, **axes):
    errors = np.asarray(errors, float)
    axes = {name: np.asarray(grid, float) for name, grid in axes.items()}
    nan = np.full(errors.shape, np.nan)
    return Path(errors, axes, "root mean squared error", "hold-out", nan, nan)


def find(figure, kind):
    return [artist for artist in figure.findobj() if type(artist).__name__ == kind]


def line(figure, name):
    lines = [each for ax in figure.axes for each in ax.lines]
    (found,) = [each for each in lines if str(each.get_label()).startswith(name)]
    return np.column_stack(found.get_data())


# The path


def test_a_map_shows_the_plane_through_the_best_point(rng, theme):
    penalties, sizes, sigmas = [1.0, 0.1, 0.01, 0.0], [10, 20, 40, 80, 160], [0.5, 1.0, 2.0]
    errors = rng.uniform(1, 2, (3, 4, 5))
    errors[1, 3, 2] = 0.9  # at penalty 0, and 40 centers
    errors[1, 0, 0] = np.inf
    path = path_of(errors, sigma=sigmas, penalty=penalties, n_centers=sizes)
    figure = drawn(draw_path, path, theme)
    mesh = find(figure, "QuadMesh")[0]
    shown = np.ma.masked_invalid(errors[1][::-1])  # upwards, penalties grow
    np.testing.assert_array_equal(mesh.get_array().filled(-1), shown.filled(-1))
    # A logarithmic axis has no 0: it is a decade below the rest.
    np.testing.assert_allclose(line(figure, "chosen"), [[40, 0.001]])
    ax = figure.axes[0]
    assert "0" in [tick.get_text() for tick in ax.get_yticklabels()]
    # Every value is in the middle of its cell, as the axis is drawn.
    corners = np.log(mesh.get_coordinates()[0, :, 0])
    np.testing.assert_allclose((corners[1:] + corners[:-1]) / 2, np.log(sizes))


def test_the_contour_goes_around_what_is_within_five_percent():
    penalties, sizes = np.geomspace(1, 1e-6, 25), np.geomspace(10, 1000, 25)
    over = np.add.outer(np.log10(penalties / 1e-3) ** 2, np.log10(sizes / 100) ** 2)
    path = path_of(2 * (1 + 0.1 * over), penalty=penalties, n_centers=sizes)
    with drawn_in(LIGHT):
        figure = drawn(draw_path, path, LIGHT)
    (contour,) = find(figure, "QuadContourSet")
    points = np.concatenate([p.vertices for p in contour.get_paths()])
    distance = np.log10(points[:, 1] / 1e-3) ** 2 + np.log10(points[:, 0] / 100) ** 2
    np.testing.assert_allclose(distance, 0.5, rtol=0.1)  # 10 % of it are 5 %


def test_over_one_parameter_it_is_a_curve(theme):
    errors = np.array([[3.0, 1.0, np.inf, 2.0]])
    path = path_of(errors, sigma=[1.0], penalty=[1.0, 0.1, 0.01, 0.001])
    figure = drawn(draw_path, path, theme)
    assert not find(figure, "QuadMesh")
    np.testing.assert_allclose(
        line(figure, "hold-out"), [[0.001, 2], [0.01, np.nan], [0.1, 1], [1, 3]]
    )
    np.testing.assert_allclose(line(figure, "chosen"), [[0.1, 1]])


@pytest.mark.parametrize(
    "errors", [np.ones((3, 4)), np.zeros((3, 4)), np.full((3, 4), np.inf)],
    ids=["equal", "zero", "infinite"],
)  # fmt: skip
def test_paths_without_a_valley_are_drawn(errors):
    errors = errors.copy()
    errors[0, 0] = 0 if errors[0, 0] == 0 else 1
    path = path_of(errors, penalty=[1.0, 0.1, 0.01], n_centers=[1, 2, 3, 4])
    with drawn_in(LIGHT):
        assert find(drawn(draw_path, path, LIGHT), "QuadMesh")


# The search


def test_trials_show_the_best_so_far_and_what_did_not_end(theme):
    seconds, errors = [1.0, 2.0, 3.0, 4.0, 0.5], [np.nan, 5.0, np.inf, 6.0, 3.0]
    figure = drawn(draw_trials, seconds, errors, ["a", "nytro", "nytro", "$a$", "nytro"], theme)
    best = line(figure, "best so far")
    best = best[np.isfinite(best[:, 1])]
    np.testing.assert_allclose(best, [[3, 5], [6, 5], [10, 5], [10.5, 3]])
    np.testing.assert_allclose(line(figure, "not finished")[:, 0], [1, 6])
    np.testing.assert_allclose(line(figure, "nytro")[-1], [10.5, 3])


def test_a_learning_curve_is_drawn_in_order_with_the_baseline(theme):
    figure = drawn(draw_learning_curve, [400, 100, 200], [1.0, 3.0, 2.0], 7.0, theme, "RMSE")
    np.testing.assert_allclose(line(figure, "this model"), [[100, 3], [200, 2], [400, 1]])
    np.testing.assert_allclose(line(figure, "simplest model")[:, 1], 7)
    assert figure.axes[0].get_ylim()[1] > 7


def test_relevance_is_sorted_and_cut(theme):
    values = np.arange(50.0)
    figure = drawn(draw_relevance, [f"c{i}" for i in range(50)], values, theme)
    ax = figure.axes[0]
    assert [bar.get_width() for bar in ax.patches] == list(range(49, 29, -1))
    assert [tick.get_text() for tick in ax.get_yticklabels()][:2] == ["c49", "c48"]


# Errors


def test_few_points_are_points_and_many_are_counted(rng, theme):
    few, many = rng.normal(size=(2, 100, 1)), rng.normal(size=(2, 5000, 1))
    (points,) = find(drawn(draw_agreement, *few, ["y"], theme), "PathCollection")
    np.testing.assert_allclose(points.get_offsets(), np.hstack(few))
    (cells,) = find(drawn(draw_agreement, *many, ["y"], theme), "PolyCollection")
    assert cells.get_array().sum() == 5000
    assert cells.get_rasterized()


def test_the_histogram_counts_all_and_the_law_has_its_area(rng, theme):
    residuals = rng.normal(1, 2, 3000)
    residuals[0] = np.nan
    figure = drawn(draw_residual_histogram, residuals, theme, "unit")
    bars = figure.axes[0].patches
    assert sum(bar.get_height() for bar in bars) == 2999
    x, y = line(figure, "normal").T
    assert np.trapezoid(y, x) == pytest.approx(2999 * bars[0].get_width(), rel=0.01)
    assert x[np.argmax(y)] == pytest.approx(1, abs=0.1)


def test_deciles_are_means_of_tenths(rng):
    predicted, observed = rng.normal(size=(2, 205))
    at, mean, error = deciles(predicted, observed)
    order = np.argsort(predicted)
    first = order[:21]  # 205 rows are five groups of 21 and five of 20
    assert at[0] == pytest.approx(predicted[first].mean())
    assert mean[0] == pytest.approx(observed[first].mean())
    assert error[0] == pytest.approx(np.sqrt(observed[first].var(ddof=1) / 21))
    assert np.average(mean, weights=[21] * 5 + [20] * 5) == pytest.approx(observed.mean())


@pytest.mark.parametrize(
    ("x", "y"),
    [([3.0], [4.0]), ([0.0] * 9, [0.0] * 9), ([2.0] * 30, list(range(30))),
     ([np.nan] * 4, [1.0] * 4), ([1e300, -1e300, 0.0], [0.0, 1e300, -1e300]),
     ([1e-300, 2e-300], [2e-300, 1e-300])],
    ids=["one row", "zeros", "constant", "missing", "huge", "tiny"],
)  # fmt: skip
def test_odd_predictions_are_drawn(x, y):
    x, y = np.array(x), np.array(y, float)
    with drawn_in(LIGHT), np.errstate(over="ignore", invalid="ignore"):
        drawn(draw_agreement, y[:, None], x[:, None], ["y"], LIGHT)
        drawn(draw_deciles, x, y, LIGHT)
        if np.abs(np.nan_to_num(x)).max() < 1e200:
            drawn(draw_residual_histogram, y - x, LIGHT, "error")
            drawn(draw_residuals, x, y - x, LIGHT, "error")


# Classes


def test_cells_of_the_confusion_matrix_are_counts(rng, theme):
    confusion = rng.integers(0, 50, (5, 5))
    confusion[3] = 0  # no row of this class
    figure = drawn(draw_confusion, confusion, ["a", "$b$", "c", "d", "<e>"], theme)
    ax = figure.axes[0]
    shown = {tuple(t.get_position()): t.get_text() for t in ax.texts}
    for i, j in np.ndindex(5, 5):
        assert shown[j, i] == str(confusion[i, j])
    share = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(share.sum(axis=1), [1, 1, 1, 0, 1])


def test_pairs_that_are_confused_most(rng, theme):
    confusion = rng.permutation(1600).reshape(40, 40)
    pairs = confused_pairs(confusion, 3)
    wrong = [(confusion[i, j], i, j) for i in range(40) for j in range(40) if i != j]
    expected = [(i, j, rows, rows / confusion[i].sum()) for rows, i, j in sorted(wrong)[:-4:-1]]
    assert pairs == expected
    figure = drawn(draw_confused_pairs, confusion, [f"k{i}" for i in range(40)], theme)
    assert figure.axes[0].patches[0].get_width() == expected[0][2]
    assert confused_pairs(np.diag([3, 4])) == []
    drawn(draw_confused_pairs, np.diag([3, 4]), "ab", theme)


def test_reliability_is_the_share_that_came_true(rng):
    confidence = rng.uniform(0, 1, 400)
    confidence[:3] = 0, 0.1, 1
    hit = rng.random(400) < confidence
    at, share, low, high, count = reliability(confidence, hit)
    for i in range(10):
        last = confidence <= 1 if i == 9 else confidence < (i + 1) / 10
        inside = (confidence >= i / 10) & last
        assert count[i] == inside.sum()
        assert at[i] == pytest.approx(confidence[inside].mean())
        assert share[i] == pytest.approx(hit[inside].mean())
        # The ends of Wilson's interval are shares p from which this one is 1.96 deviations off.
        for p in (low[i], high[i]):
            assert abs(share[i] - p) == pytest.approx(1.96 * np.sqrt(p * (1 - p) / count[i]))


def test_classes_and_outputs_have_bars(theme):
    figure = drawn(draw_class_bars, ["a", "b"], [1.0, np.nan], [0.5, 0.25], theme)
    assert [bar.get_width() for bar in figure.axes[0].patches] == [1, 0, 0.5, 0.25]
    figure = drawn(draw_output_bars, list(range(30)), np.linspace(0, 2, 30), theme)
    names = [int(tick.get_text()) for tick in figure.axes[0].get_yticklabels()]
    assert names == list(range(10, 30))  # the worst twenty
    drawn(draw_reliability, np.array([0.5]), np.array([True]), theme)
    drawn(draw_reliability, np.array([]), np.array([]), theme)


# Cost


def test_cost_shows_parts_of_a_whole(theme):
    cost = Cost({"reading": 1.0, "fitting": 3.0}, 5.0, 500, 2000, 3e9, 4e9)
    figure = drawn(draw_cost, cost, theme)
    time, memory, operations = figure.axes
    assert [(bar.get_x(), bar.get_width()) for bar in time.patches] == [(0, 1), (1, 3)]
    assert [bar.get_width() for bar in memory.patches] == [2000, 500]
    assert operations.get_title(loc="left") == "operations: 3 Gflop of 4 Gflop (75 %)"
    drawn(draw_cost, Cost({}, None, 0, 0, 0.0, 0.0), theme)
    drawn(draw_cost, Cost({"a": 0.0}, None, 9, 5, 1e30, 0.0), theme)


# Colours and letters


def luminance(color):
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    from matplotlib.colors import to_rgb

    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme_of", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_seen(theme_of):
    for name in ("ink", "soft"):
        assert contrast(getattr(theme_of, name), theme_of.surface) >= 4.5
    for name in ("blue", "orange", "red", "green"):
        assert contrast(getattr(theme_of, name), theme_of.surface) >= 3


def test_a_figure_drawn_for_white_is_shown_on_dark_and_stays_as_it_was():
    figure = figures.Figure()
    ax = figure.add_subplot()
    (curve,) = ax.plot([1, 2], [3, 4], color="#00007f", label="curve")
    mesh = ax.pcolormesh(np.arange(6.0).reshape(2, 3))
    text = ax.text(1, 3, "text")
    ax.legend()
    figure.draw_without_rendering()
    before = [curve.get_color(), text.get_color(), mesh.get_facecolor().copy()]
    behind = figure.get_facecolor()
    with recoloured(figure, DARK):
        assert contrast(text.get_color(), DARK.surface) > 4.5
        assert contrast(curve.get_color(), DARK.surface) > 3
        assert contrast(ax.xaxis.label.get_color(), ax.get_facecolor()) > 4.5
        assert luminance(figure.get_facecolor()) < 0.05
        np.testing.assert_array_equal(mesh.get_facecolor(), before[2])
    assert [curve.get_color(), text.get_color()] == before[:2]
    assert figure.get_facecolor() == behind


@pytest.mark.parametrize("name", ["$x_1$", "a$b", r"\$$", "$", "<b>&", "tab\there", "a\x00b"])
def test_names_are_drawn_letter_by_letter(name):
    from matplotlib.text import Text

    with drawn_in(LIGHT):
        text, is_math = Text(0, 0, label(name))._preprocess_math(label(name))
    assert not is_math
    assert text == name.replace("\t", " ").replace("\x00", " ")


def test_long_names_are_shortened_to_a_length_that_can_be_drawn():
    assert len(label("x" * 5000, 20)) == 20
    assert label("short") == "short"
