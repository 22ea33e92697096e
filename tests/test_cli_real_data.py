"""Fit, predict and evaluate on every benchmark data set; large ones are fitted only."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from imparo.cli import main

QUICK = ["--method", "nystrom", "--centers", "100"]
#: Further arguments of the fit, the metric, and what it stays below with 100 centers.
SETS = {
    "adult": ([], "error", 0.18),
    "breastcancer_thesis": ([], "error", 0.15),
    "covtype": (["--centers", "50"], "error", 0.33),
    "cpu_act": ([], "rmse", 8),
    "cpu_small": ([], "rmse", 8),
    "icub_arm_ft_small": ([], "rmse", 0.6),
    "icub_camera49_effnetlite0": (["--group", "view", "--task", "classification"], "error", 0.4),  # noqa: E501
    "ijcnn1": (["--split", "time"], "error", 0.1),
    "insurance_coil2000": ([], "error", 0.07),
    "mnist": (["--centers", "50"], "error", 0.25),
    "panda_dynamics": (["-t", "tau", "--split", "time"], "rmse", 10),
    "pumadyn32nh": ([], "rmse", 0.035),
    "pumadyn32nm": ([], "rmse", 0.03),
    "sarcos_inv_test_only": ([], "rmse", 2.5),
    "tiago_dynamics": (["-t", "effort", "--split", "time"], "rmse", 10),
    "tx40_dynamics": (["-t", "motor_current", "--split", "time"], "rmse", 10),
    "uci_kin40k": ([], "rmse", 0.8),
    "ur10e_dynamics": (
        ["-t", "current", "--columns", "q,dq,ddq_derived", "--group", "traj"], "rmse", 10,
    ),
}  # fmt: skip


def run(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def folder():
    given = os.environ.get("IMPARO_DATA")
    if not given:
        pytest.skip("IMPARO_DATA does not name a folder with the benchmark data")
    return Path(given)


#: One of each kind: classes, numbers, rows for a test in the file, times, outputs, groups.
KINDS = ("adult", "cpu_small", "ijcnn1", "tx40_dynamics", "ur10e_dynamics")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in KINDS else pytest.mark.slow) for n in SETS]
)
def test_a_real_file_is_fitted_predicted_and_judged(name, folder, tmp_path):
    arguments, metric, most = SETS[name]
    path, model = folder / f"{name}.npz", tmp_path / "model.imparo"
    if not path.exists():
        pytest.skip(f"IMPARO_DATA has no {path.name}")
    account = json.loads(run("fit", path, *QUICK, *arguments, "-o", model, "--json").stdout)
    found = account["evaluation"]
    assert found["metrics"][metric] < most
    assert found["metrics"][metric] <= found["baseline"][metric]
    if account["rows_read"] > 100_000:
        return
    judged = json.loads(run("evaluate", model, path, "--json").stdout)
    assert judged["metrics"][metric] < 1.3 * most
    run("predict", model, path, "-o", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as out:
        assert {len(out[key]) for key in out.files} == {judged["rows"]}


@pytest.mark.parametrize("name", ["model_icub", "model_ur10e"])
def test_a_file_without_rows_says_so(name, folder):
    result = CliRunner().invoke(main, ["fit", str(folder / f"{name}.npz")])
    assert result.exit_code == 3
    assert "holds no table" in result.stderr
