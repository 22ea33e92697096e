"""``import imparo`` and the help of commands import no more than they need."""

import ast
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import imparo
from imparo import persistence
from imparo.cli import main

SOURCE = Path(imparo.__file__).parent


def in_a_process(text, *arguments):
    """Return what some Python prints as JSON, in a process that has imported nothing."""
    command = [sys.executable, "-c", text, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


HELPED = """
import json, sys
from click.shell_completion import BashComplete
from click.testing import CliRunner
from imparo.cli import main
heavy, found = ("sklearn", "matplotlib", "pyarrow", "pandas"), {}
def note(name):
    found[name] = [module for module in heavy if module in sys.modules]
complete = BashComplete(main, {}, "imparo", "_IMPARO_COMPLETE")
for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(main, [*arguments, "--help"])
    assert result.exit_code == 0, result.output
    assert complete.get_completions(arguments, "--he") or not arguments
    note(" ".join(arguments))
print(json.dumps(found))
"""


def test_help_and_completion_import_nothing_that_computes():
    commands = [[], *([name] for name in main.sentences)]
    commands += [["dynamics", name] for name in ("simulate", "fit", "stream", "identify")]
    found = in_a_process(HELPED, json.dumps(commands))
    assert found == {" ".join(arguments): [] for arguments in commands}


FRESH = """
import json, sys
import imparo
before = [name for name in sys.modules if name.startswith(("imparo.", "sklearn", "numpy"))]
model = imparo.load(sys.argv[1])
print(json.dumps([before, type(model).__module__, model.predict([[0.5, 1.0]]).tolist()]))
"""


def test_a_model_is_loaded_where_its_class_was_never_imported(tmp_path, rng):
    X = rng.normal(size=(30, 2))
    model = imparo.NystromRegressor("matern32", n_centers=10, penalty=0.1, random_state=0)
    model.fit(X, np.sin(X[:, 0]))
    imparo.save(model, tmp_path / "model.imparo")
    before, module, predicted = in_a_process(FRESH, tmp_path / "model.imparo")
    assert before == []
    assert module == "imparo.estimators.nystrom"
    assert_array_equal(predicted, model.predict([[0.5, 1.0]]))


HELD = """
import importlib, json
from imparo import persistence
from imparo.cli import main
for name in persistence._HOLDERS:
    importlib.import_module(name)
print(json.dumps(sorted(persistence._CLASSES)))
"""


def test_the_modules_that_are_searched_hold_every_persistent_class():
    marked = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = {getattr(mark, "id", "") for mark in node.decorator_list}
                marked |= {node.name} if "persistent" in names else set()
    assert len(marked) > 80
    assert marked <= set(in_a_process(HELD))


def test_a_class_that_nobody_holds_is_none():
    assert persistence._class_named("NoSuchClass") is None


def test_every_public_name_is_found_and_is_what_its_home_calls_so():
    assert set(imparo._HOME_OF) | {"__version__"} == set(imparo.__all__)
    assert set(imparo.__all__) <= set(dir(imparo))
    for name, home in imparo._HOME_OF.items():
        module = sys.modules.get(f"imparo.{home}") or getattr(imparo, home)
        assert getattr(imparo, name) is getattr(module, name)
    everything = {}
    exec("from imparo import *", everything)
    assert set(imparo.__all__) - {"__version__"} <= set(everything)


def test_what_type_checkers_read_is_what_is_found():
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [n for n in tree.body if isinstance(n, ast.If) and not n.orelse][:1]
    read = {alias.name: node.module for node in block.body for alias in node.names}
    assert read == {name: f"imparo.{home}" for name, home in imparo._HOME_OF.items()}


MODULES = """
import json, imparo
names = ("data", "kernels", "lifelong", "theory", "dynamics")
print(json.dumps([getattr(imparo, name).__name__ for name in names]))
"""


def test_modules_are_attributes():
    names = ("data", "kernels", "lifelong", "theory", "dynamics")
    assert in_a_process(MODULES) == [f"imparo.{name}" for name in names]
    assert set(names) <= set(dir(imparo))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'KernelRegresor'"):
        imparo.KernelRegresor  # noqa: B018
    assert not hasattr(imparo, "__main__")


def test_models_are_pickled_as_ever(rng):
    X = rng.normal(size=(20, 2))
    model = imparo.KernelRegressor(penalty=0.1).fit(X, X[:, 0])
    same = pickle.loads(pickle.dumps(model))
    assert_array_equal(same.predict(X), model.predict(X))
