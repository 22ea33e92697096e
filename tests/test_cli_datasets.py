"""``imparo datasets``: what it prints, writes and answers with."""

import gzip
import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from imparo.cli import main
from imparo.data import named
from imparo.data.named import downloading
from imparo.data.synthetic import gaussians, rkhs_function, spline


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPARO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("IMPARO_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "cache"


def run(line, code=0):
    result = CliRunner().invoke(main, ["datasets", *shlex.split(line)])
    assert result.exit_code == code, result.output
    return result


def answer(line):
    return json.loads(run(f"{line} --json").stdout)


@pytest.fixture
def fetched(monkeypatch):
    """Originals are not fetched but written here; by the end of their addresses."""
    files = {}

    def fetch(original, path, progress=None):
        address = original.addresses[0]
        content = files.get(address.rsplit("/", 1)[-1])
        if content is None:
            raise ConnectionError(
                f"{address} cannot be reached (no route); is there a network?"
            )
        path.write_bytes(content)
        if progress is not None:
            progress(len(content), len(content))
        return address, "0" * 64

    monkeypatch.setattr(downloading, "fetch", fetch)
    return files


@pytest.fixture
def tiny_kin40k(fetched, monkeypatch):
    """kin40k with 40,000 rows of zeros, of which no checksum is known."""
    row = ",".join("0" * 9)
    fetched["data.csv.gz"] = gzip.compress(f"{row}\n".encode() * 40_000)
    known = replace(named.DATASETS["kin40k"], checksums={})
    others = [dataset for dataset in named.DATASETS.values() if dataset.name != "kin40k"]
    registry = type(named.DATASETS)((*others, known))
    monkeypatch.setattr(named, "DATASETS", registry)
    monkeypatch.setattr("imparo.data.named.finding.DATASETS", registry)


# list, show and path.


def test_all_data_sets_are_listed_with_where_they_are(cache):
    lines = run("list").stdout.splitlines()
    for name, words in {
        "concrete": ("1,030", "8", "regression", "shipped"),
        "covtype": ("581,012", "54", "classification", "can be downloaded"),
        "icubworld28": ("not available",),
    }.items():
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert all(word in line for word in words)
    assert len([line for line in lines if line.strip()]) == 2 + len(named.DATASETS)


def test_the_list_is_for_machines_too(cache):
    found = {told["name"]: told for told in answer("list")}
    assert list(found) == named.names()
    assert found["adult"]["where"] == "download"
    assert found["adult"]["parts"] == {"train": 32_561, "test": 16_281}
    assert found["adult"]["downloads"][0].endswith("/a9a")


def test_a_file_in_the_users_folder_is_shown_with_the_parts_it_lacks(
    cache, tmp_path, monkeypatch
):
    monkeypatch.setenv("IMPARO_DATA", str(tmp_path))
    test = {"X_test": np.zeros((4449, 21)), "y_test": np.zeros((4449, 7))}
    np.savez(tmp_path / "sarcos_inv_test_only.npz", **test)
    (line,) = (line for line in run("list").stdout.splitlines() if "sarcos" in line)
    assert "in IMPARO_DATA, without train" in line
    assert answer("show sarcos")["file"] == str(tmp_path / "sarcos_inv_test_only.npz")
    assert "other values in X_test" in run("show sarcos --check", 3).stderr


def test_one_data_set_is_told_with_its_traps_and_addresses(cache):
    told = run("show ADULT").stdout
    for words in ("CC BY 4.0", "32,561", "all zeros", "σ = 6.6", "can be downloaded"):
        assert words in told
    address = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a9a.t"
    assert any(line.endswith(address) for line in told.splitlines())
    assert answer("show puma32h")["name"] == "pumadyn32nm"
    assert "Checksums: not known" in run("show concrete --check").stdout


def test_the_place_of_the_cache_is_printed_alone(cache):
    assert run("path").stdout == f"{cache}\n"
    assert answer("path") == {"cache": str(cache), "data": None}


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("show cpusmal", 3, "did you mean cpu-small"),
        ("show adult --check", 4, "imparo datasets get adult"),
        ("get", 2, "or --all"),
        ("get adult --all", 2, "or --all"),
        ("get nothing", 3, "there is no data set 'nothing'"),
        ("get ur10e", 3, "cannot be downloaded: Innopolis"),
        ("get adult", 4, "is there a network"),
        ("make gaussians --rows 0 -o a.csv", 2, "0 is not in the range"),
        ("make gaussians --rows 9", 2, "--output"),
        ("make spline --gamma 0.5 --rows 9 -o a.csv", 2, "0.5 is not in the range"),
        ("make gaussians --rows 9 -o a.doc", 3, "a.doc"),
        ("make gaussians --rows 9 -o no/where.csv", 4, "no folder"),
    ],
    ids=range(12),
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    cache, fetched, tmp_path, monkeypatch, line, code, words
):
    monkeypatch.chdir(tmp_path)
    result = run(line, code)
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    if code > 2:
        assert len(result.stderr.strip().splitlines()) == 1


# get.


def test_a_data_set_is_fetched_once(cache, tiny_kin40k):
    first = answer("get kin40k")
    path = str(cache / "uci_kin40k.npz")
    assert first == [{"name": "kin40k", "file": path, "downloaded": True}]
    assert answer("get kin40k")[0]["downloaded"] is False
    assert "already here" in run("get kin40k").stdout
    assert "downloaded to" in run("get kin40k --again").stdout
    assert named.find("kin40k").n_rows == 40_000
    (line,) = (line for line in run("list").stdout.splitlines() if "kin40k" in line)
    assert line.rstrip().endswith("downloaded")


def test_what_ships_needs_no_download(cache):
    assert answer("get concrete") == [{"name": "concrete", "file": None, "downloaded": False}]


def test_all_are_fetched_though_some_servers_do_not_answer(cache, tiny_kin40k):
    result = run("get --all --json", 4)
    assert (cache / "uci_kin40k.npz").is_file()
    told = json.loads(result.stdout.strip().splitlines()[-1])
    assert told["code"] == 4
    assert "mnist: https" in told["error"]
    assert "kin40k:" not in told["error"]


# make.


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        ("gaussians", lambda n: gaussians(n, rng=0)),
        ("gaussians --deviation 0.3 --deviation 1 --share 0.9 --seed 4",
         lambda n: gaussians(n, deviations=(0.3, 1), share=0.9, rng=4)),
        ("spline --r 0.875 --noise 0.2", lambda n: spline(n, 0.875, noise=0.2, rng=0)),
        ("rkhs --columns 5 --snr 9", lambda n: rkhs_function(n, 5, 9, rng=0)),
        ("rkhs --sigma 0.5", lambda n: rkhs_function(n, 3, 100, sigma=0.5, rng=0)),
    ],
    ids=range(5),
)  # fmt: skip
def test_made_rows_are_those_of_the_library(cache, tmp_path, line, sample):
    expected = sample(500)
    file = tmp_path / "rows.csv"
    told = answer(f"make {line} --rows 500 -o {file}")
    assert told["bayes_error"] == pytest.approx(expected.bayes_error)
    assert (told["rows"], told["columns"]) == (500, expected.law.d)
    head = file.read_text().splitlines()[0]
    assert head == ",".join(expected.names)
    found = np.loadtxt(file, delimiter=",", skiprows=1)
    np.testing.assert_array_equal(found, np.column_stack([*expected.X.T, expected.y]))


def test_rows_are_written_in_blocks(cache, tmp_path, monkeypatch):
    monkeypatch.setattr("imparo.cli.datasets_make._ROWS", 300)
    monkeypatch.setattr(
        "imparo.data.synthetic.Sample.X", property(lambda self: pytest.fail("all at once"))
    )
    sizes = []
    blocks = gaussians(1).__class__.blocks
    monkeypatch.setattr(
        "imparo.data.synthetic.Sample.blocks",
        lambda self, size: sizes.append(size) or blocks(self, size),
    )
    file = tmp_path / "rows.npz"
    assert "1,000 rows" in run(f"make gaussians --rows 1000 -o {file}").stdout
    assert sizes == [300]
    with np.load(file) as archive:
        np.testing.assert_array_equal(archive["y"], gaussians(1000, rng=0).y)


def test_rows_may_go_to_standard_output(cache):
    result = run("make spline --rows 3 -o -")
    assert result.stdout.splitlines()[0] == "x1,y"
    assert len(result.stdout.splitlines()) == 4
    assert "3 rows" in result.stderr


@pytest.mark.parametrize("line", ["", "list", "show", "get", "path", "make", "make rkhs"])
def test_every_help_has_examples(line):
    assert "Examples:\n  imparo datasets" in run(f"{line} --help").stdout
