"""Downloads: fetched from a server of this machine, converted, checked, and kept or not."""

import bz2
import errno
import gzip
import io
import json
import struct
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy.io import savemat

from imparo.data.named import DATASETS, content_checksum, download, downloading, find, originals
from imparo.data.named.registry import Original, Registry


class _Files(BaseHTTPRequestHandler):
    """Serves what is in ``server.files``; a number is an answer without a file."""

    def do_GET(self):
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path.lstrip("/"), 404)
        if isinstance(content, int):
            self.send_error(content)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) + self.server.missing))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Files) as made:
        made.files, made.asked, made.missing = {}, [], 0
        made.address = f"http://127.0.0.1:{made.server_port}"
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPARO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("IMPARO_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


def served(name, server, **files):
    """Return a data set whose originals are on the server, by their names in the recipe."""
    dataset = DATASETS[name]
    made = []
    for original in dataset.recipe.originals:
        file = original.addresses[0].rsplit("/", 1)[-1]
        if original.name.replace(" ", "_") in files:
            server.files[file] = files[original.name.replace(" ", "_")]
        made.append(replace(original, addresses=(f"{server.address}/{file}",)))
    return replace(dataset, recipe=replace(dataset.recipe, originals=tuple(made)))


def smaller(dataset, **shapes):
    """Return a data set of which only shapes are known, and those are small."""
    recipe = replace(dataset.recipe, shapes=shapes)
    return replace(dataset, recipe=recipe, checksums={})


# Files as they were published.


def text_of(table, delimiter, pattern="%.9g", header=""):
    out = io.StringIO()
    np.savetxt(out, table, pattern, delimiter, header=header, comments="")
    return out.getvalue().encode()


def libsvm_of(X, y):
    lines = [
        " ".join([f"{label:+g}", *(f"{j + 1}:{v:.9g}" for j, v in enumerate(row) if v)])
        for row, label in zip(X, y, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def idx_of(array):
    head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(head + array.tobytes(), 1)


def zip_of(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


def mat_of(**matrices):
    out = io.BytesIO()
    savemat(out, matrices)
    return out.getvalue()


def arff_of(X, y):
    head = b"% by hand\n@relation cpu\n@attribute a numeric\n\n@data\n"
    return head + text_of(np.column_stack([X, y]), ", ")


def kept(cache, dataset):
    with np.load(cache / dataset.archives[0]) as archive:
        return {key: archive[key] for key in archive.files}


def test_computer_activity_comes_out_of_arff_as_it_is_shared(real_data, server, cache):
    given = real_data("cpu_small")
    dataset = served("cpu-small", server, data=arff_of(given["X"], given["y"]))
    seen = []
    path = download(dataset, lambda done, total: seen.append((done, total)))
    found = kept(cache, dataset)
    assert path == cache / "cpu_small.npz"
    assert {key: array.dtype for key, array in found.items()} == {
        key: array.dtype for key, array in given.items()
    }
    for key, array in given.items():
        np.testing.assert_array_equal(found[key], array)
    assert seen[-1] == (len(server.files["cpu.small.arff"]),) * 2
    assert find("cpu-small").files == [path]


def test_the_insurance_benchmark_comes_out_of_its_archive_as_it_is_shared(
    real_data, server, cache
):
    given = real_data("insurance_coil2000")
    train = np.column_stack([given["X_train"], given["y_train"]])
    archive = zip_of(
        ticdata2000__txt=text_of(train, "\t"),
        ticeval2000__txt=text_of(given["X_test"], "\t"),
        tictgts2000__txt=text_of(given["y_test"], "\t"),
    )
    dataset = served("insurance", server, archive=archive)
    download(dataset)
    found = kept(cache, dataset)
    assert {k: content_checksum(a) for k, a in found.items()} == dataset.checksums


def test_adult_comes_out_of_libsvm_text_as_it_is_shared(real_data, server, cache):
    given = real_data("adult")
    files = {
        part: libsvm_of(given[f"X_{part}"][:n], 2 * given[f"y_{part}"][:n].astype(int) - 1)
        for part, n in (("train", -1), ("test", 400))
    }
    whole = served("adult", server, **files)
    shapes = whole.recipe.shapes | {"X_test": (400, 123), "y_test": (400,)}
    known = {key: whole.checksums[key] for key in ("X_train", "y_train")}
    dataset = replace(whole, recipe=replace(whole.recipe, shapes=shapes), checksums=known)
    download(dataset)
    np.testing.assert_array_equal(kept(cache, dataset)["X_test"], given["X_test"][:400])


def mnist(real):
    given = {key: array[:50] for key, array in real("mnist").items()}
    files = {}
    for part in ("train", "test"):
        files[f"{part}_images"] = idx_of(given[f"X_{part}"].reshape(-1, 28, 28))
        files[f"{part}_labels"] = idx_of(given[f"y_{part}"])
    return given, files


def ijcnn1(real):
    given = {key: array[:80] for key, array in real("ijcnn1").items()}
    given |= {"X_test": given["X_val"][:30], "y_test": given["y_val"][:30]}
    files = {
        part: bz2.compress(libsvm_of(given[f"X_{part}"], given[f"y_{part}"]))
        for part in ("train", "val", "test")
    }
    return given, files


def covtype(real):
    given = {key: array[:70] for key, array in real("covtype").items()}
    table = np.column_stack([given["X"], given["y"]])
    return given, {"data": gzip.compress(text_of(table, ",", "%d"))}


def pumadyn32nh(real):
    given = {key: array[:70] for key, array in real("pumadyn32nh").items()}
    return given, {"data": gzip.compress(text_of(np.column_stack([*given.values()]), " "))}


def kin40k(real):
    given = {key: array[:70] for key, array in real("uci_kin40k").items()}
    return given, {"data": gzip.compress(text_of(np.column_stack([*given.values()]), ","))}


def sarcos(real):
    given = {key: array[:60] for key, array in real("sarcos_inv_test_only").items()}
    table = np.column_stack([given["X_test"], given["y_test"]]).astype(np.float64)
    given |= {"X_train": given["X_test"][:40], "y_train": given["y_test"][:40]}
    files = {"train": mat_of(sarcos_inv=table[:40]), "test": mat_of(sarcos_inv_test=table)}
    return given, files


def ct_slices(_):
    given = {"X": np.linspace(-1, 1, 5 * 384, dtype=np.float32).reshape(5, 384)}
    given["y"] = np.arange(5, dtype=np.float32)
    table = np.column_stack([[7] * 5, given["X"], given["y"]])
    text = text_of(table, ",", header="patientId,value0,…".replace("…", "reference"))
    return given, {"archive": zip_of(slice_localization_data__csv=text)}


@pytest.mark.parametrize(
    "original", [mnist, ijcnn1, covtype, pumadyn32nh, kin40k, sarcos, ct_slices]
)
def test_some_rows_of_every_format_come_out_as_they_are_shared(
    original, real_data, server, cache
):
    given, files = original(real_data)
    name = original.__name__.replace("_", "-")
    shapes = {key: array.shape for key, array in given.items()}
    dataset = smaller(served(name, server, **files), **shapes)
    download(dataset)
    found = kept(cache, dataset)
    assert found.keys() == given.keys()
    for key, array in given.items():
        np.testing.assert_array_equal(found[key], array)
        assert found[key].dtype == array.dtype
        assert found[key].flags.c_contiguous


def test_years_are_split_where_the_publisher_says(server, cache):
    # All rows, for the split is a number of rows; the columns make no difference.
    years = 1922 + np.arange(515_345) % 90
    text = "\n".join(f"{year},1,2" for year in years.tolist()) + "\n"
    member = zip_of(YearPredictionMSD__txt=text.encode())
    dataset = served("year-prediction", server, archive=member)
    shapes = {"X_train": (463_715, 2), "y_train": (463_715,),
              "X_test": (51_630, 2), "y_test": (51_630,)}  # fmt: skip
    download(smaller(dataset, **shapes))
    found = kept(cache, dataset)
    np.testing.assert_array_equal(np.append(found["y_train"], found["y_test"]), years)


# What is kept, and what is not.


@pytest.fixture
def small(server):
    """A data set of six rows, of which no checksum is known."""
    X, y = np.arange(48.0).reshape(6, 8), np.arange(6.0)
    text = gzip.compress(text_of(np.column_stack([X, y]), ","), mtime=0)
    return smaller(served("kin40k", server, data=text), X=(6, 8), y=(6,))


def test_the_digest_of_the_original_is_noted_and_must_stay(small, server, cache):
    download(small)
    noted = json.loads((cache / "uci_kin40k.json").read_text())
    assert noted["name"] == "kin40k"
    assert noted["files"]["data"]["address"] == f"{server.address}/data.csv.gz"
    assert len(noted["files"]["data"]["sha256"]) == 64
    assert noted["content"]["y"] == content_checksum(np.arange(6))
    download(small)  # the same again
    server.files["data.csv.gz"] = gzip.compress(text_of(np.zeros((6, 9)), ","))
    with pytest.raises(ValueError, match="not the file that was fetched before"):
        download(small)
    assert kept(cache, small)["y"][5] == 5
    (cache / "uci_kin40k.json").unlink()
    download(small)
    assert kept(cache, small)["y"][5] == 0


def test_other_values_than_those_known_are_not_kept(small, cache):
    known = replace(small, checksums={"y": content_checksum(np.ones(6))})
    with pytest.raises(ValueError, match=r"other values in y .* nothing was kept"):
        download(known)
    assert list(cache.iterdir()) == []


def test_other_shapes_than_those_published_are_not_kept(small, cache):
    with pytest.raises(ValueError, match=r"X of shape \(6, 8\), and \(7, 8\)"):
        download(smaller(small, X=(7, 8), y=(7,)))
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (404, FileNotFoundError, "no file http.*any more"),
        (503, ConnectionError, "refused by its server"),
        (b"<html>moved</html>", ValueError, "not a table of numbers as it was published"),
        (b"\x1f\x8bnonsense", ValueError, "data.csv.gz is not"),
    ],
    ids=["gone", "refused", "page", "broken"],
)
def test_what_is_not_the_file_is_told_in_a_sentence(answer, kind, words, small, server, cache):
    server.files["data.csv.gz"] = answer
    with pytest.raises(kind, match=words) as caught:
        download(small)
    assert "\n" not in str(caught.value)
    assert list(cache.iterdir()) == []


def test_no_network_a_broken_line_and_a_large_file_are_told(small, server, cache, monkeypatch):
    (original,) = small.recipe.originals

    def changed(**fields):
        one = (replace(original, **fields),)
        return replace(small, recipe=replace(small.recipe, originals=one))

    with pytest.raises(ConnectionError, match="is there a network"):
        download(changed(addresses=("http://127.0.0.1:9/data.csv.gz",)))
    with pytest.raises(ValueError, match="larger than the 10 bytes"):
        download(changed(most_bytes=10))
    with pytest.raises(ValueError, match="must begin with https"):
        download(changed(addresses=("file:///etc/passwd",)))
    server.missing = 7
    monkeypatch.setattr(downloading, "TIMEOUT", 0.5)
    with pytest.raises(ConnectionError, match=r"cannot be reached \(.*(ended|timed out)"):
        download(small)
    assert list(cache.iterdir()) == []


def test_the_second_address_serves_where_the_first_does_not(small, server, cache):
    (original,) = small.recipe.originals
    both = (f"{server.address}/gone", *original.addresses)
    recipe = replace(small.recipe, originals=(replace(original, addresses=both),))
    download(replace(small, recipe=recipe))
    assert server.asked == ["/gone", "/data.csv.gz"]


def test_a_full_disk_is_told_with_what_is_needed(small, cache, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match=r"disk of .* is full: kin40k needs about 4 MB"):
        download(small)
    assert list(cache.iterdir()) == []


def test_nothing_is_downloaded_unless_it_is_asked_for(small, server, cache, monkeypatch):
    monkeypatch.setattr("imparo.data.named.finding.DATASETS", Registry((small,)))
    with pytest.raises(FileNotFoundError, match="datasets get kin40k"):
        find("kin40k")
    assert server.asked == []
    with pytest.raises(ValueError, match="6 rows where 40,000"):
        find("kin40k", download=True)
    assert server.asked == ["/data.csv.gz"]


def test_what_cannot_be_downloaded_is_told_with_its_source():
    with pytest.raises(ValueError, match=r"Innopolis .* put ur10e_dynamics.npz"):
        download(DATASETS["ur10e"])


# Files that mean harm.


@pytest.mark.parametrize("name", ["../slice.csv", "/slice.csv", "a/../../slice.csv", "..\\x"])
def test_archives_that_point_outside_are_refused(name, tmp_path):
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("slice.csv", "1,2\n")
        archive.writestr(name, "1,2\n")
    with pytest.raises(ValueError, match="outside of itself"):
        originals.read_text(path, "slice.csv")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gzip", "bzip2"])
def test_files_that_grow_without_end_are_stopped(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(originals, "MOST_BYTES", 100_000)
    path = tmp_path / "bomb"
    path.write_bytes(pack(b"1,2\n" * 50_000))
    with pytest.raises(ValueError, match="far larger than the published file"):
        originals.read_text(path)


def test_a_member_that_is_not_there_and_matrices_that_are_none_are_told(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(zip_of(a__csv=b"1,2\n"))
    np.testing.assert_array_equal(originals.read_text(path, "a.csv"), [[1, 2]])
    with pytest.raises(ValueError, match=r"has no file b\.csv"):
        originals.read_text(path, "b.csv")
    path.write_bytes(mat_of(a=np.array(["text"], dtype=object)))
    with pytest.raises(ValueError, match="no matrix of numbers"):
        originals.read_matlab(path, "a")
    path.write_bytes(struct.pack(">HBBI", 0, 8, 1, 2**31) + b"abc")
    with pytest.raises(ValueError, match="bytes that it announces"):
        originals.read_idx(path)
    path.write_bytes(b"@relation a\n1,2\n")
    with pytest.raises(ValueError, match="no line @data"):
        originals.read_arff(path)


def test_originals_have_names_without_paths():
    for dataset in DATASETS.values():
        for original in dataset.recipe.originals if dataset.recipe else ():
            assert isinstance(original, Original)
            assert original.addresses[0].rsplit("/", 1)[-1] not in ("", "..")
