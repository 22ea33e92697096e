"""Learners as files: exported, imported from another service, or from a model file."""

import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

from fastapi.responses import StreamingResponse

from imparo.errors import FileFormatError
from imparo.journal import Journal, decode, encode
from imparo.persistence import load
from imparo.service.album import Album, key_of
from imparo.service.errors import Conflict, Refused, ServiceError, TooMuch
from imparo.service.inspection import check_album, check_learner
from imparo.service.learners import Entry
from imparo.service.live import LiveLearner
from imparo.service.recipes import size_of
from imparo.service.settings import Limits
from imparo.service.sizes import bytes_of

_ABOUT, _MODEL, _ALBUM = "about.json", "learner.imparo", "album.bin"
# Bytes of a file that are in memory while it is sent.
_PIECE = 2**18
# Bytes of a model file's header: names, labels and plain values, but no arrays.
_HEADER = 2**24
# Entries of an archive. Three are right; the mark of one may also be among the numbers.
_ENTRIES = 1000
# By name: learners of dynamics take a second to import.
_KINDS = {
    "IncrementalClassifier": "classifier",
    "RecursiveRegressor": "regressor",
    "NonparametricDynamics": "dynamics",
    "ParametricDynamics": "dynamics",
    "SemiparametricDynamics": "dynamics",
}
_SENTENCE = "this is no exported learner, or it is damaged ({}); export it again"


def exported(live: LiveLearner, about: dict[str, Any]) -> IO[bytes]:
    """Return a learner, its album and what was said of it as one file, which has no name.

    Parameters
    ----------
    live : LiveLearner
        In whose thread this runs.
    about : dict
    """
    # On disk: a client may take its time to fetch it.
    file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by who reads it
    try:
        with zipfile.ZipFile(file, "w") as archive, tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _MODEL
            live.learner.save(path)
            # Without the time: of the same learner the file is the same.
            with (
                path.open("rb") as model,
                archive.open(zipfile.ZipInfo(_MODEL), "w", force_zip64=True) as part,
            ):
                shutil.copyfileobj(model, part, _PIECE)
            archive.writestr(zipfile.ZipInfo(_ALBUM), encode(live.album.state()))
            archive.writestr(zipfile.ZipInfo(_ABOUT), json.dumps(about))
    except BaseException:
        file.close()
        raise
    return file


class Sent(StreamingResponse):
    """A file on its way out, closed at once when it has come or its reader has gone.

    Parameters
    ----------
    file : file
        Without a name: closed, it is gone.
    name : str
        Under which a browser keeps it.
    closed : function
        Called when it is.
    """

    def __init__(self, file: IO[bytes], name: str, closed: Callable[[], None]) -> None:
        self._file, self._closed = file, closed
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        headers = {
            "content-disposition": f'attachment; filename="{name}"',
            "content-length": str(size),
        }
        parts = iter(partial(file.read, _PIECE), b"")
        super().__init__(parts, headers=headers, media_type="application/octet-stream")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()
            self._closed()


def check_merge(live: LiveLearner, other: LiveLearner, most: int) -> None:
    """Raise unless one learner may learn all that another one has learned.

    Parameters
    ----------
    live, other : LiveLearner
    most : int
        Classes of one learner.
    """
    if not hasattr(live.learner._learner, "merge"):
        raise Refused(
            "learners of dynamics cannot be merged; teach one of them the other's data"
        )
    for one in (live, other):
        if not one.desk.n_seen:
            raise Conflict(f"the learner {one.name!r} has learned nothing yet; teach it first")
    if live.is_classifier and other.is_classifier:
        classes = {key_of(c) for one in (live, other) for c in one.learner.classes_.tolist()}
        if len(classes) > most:
            raise TooMuch(
                f"together they know {len(classes)} classes, and the service takes at most "
                f"{most}; forget some first"
            )
        live.desk.keep_room(len(classes))


class Imported:
    """A learner that came as a file, checked.

    Parameters
    ----------
    content : bytes
        What :func:`exported` wrote, or a model file of :func:`imparo.save`.
    limits : Limits

    Attributes
    ----------
    learner : estimator
    about : dict
    album : dict or None
    size : int
        Bytes of the model.

    Raises
    ------
    Refused, TooMuch
        If it is no learner, damaged, or larger than the limits.
    """

    def __init__(self, content: bytes, limits: Limits) -> None:
        parts = {_MODEL: content}
        if content[:4] == b"PK\x03\x04":
            parts = _unpacked(content, 2 * limits.import_bytes)
        self.learner = _learner(parts[_MODEL])
        self.about = _about(parts.get(_ABOUT), self.learner)
        self.album = None
        if _ALBUM in parts:
            self.album = _album(parts[_ALBUM])
        self.size = _tried_out(self.learner, limits)

    def filler(self) -> Callable[[Path], None]:
        """Return a function that puts the album into the folder of a new learner."""

        def fill(folder: Path) -> None:
            if self.album is None:
                return
            content = encode(self.album)
            with Journal(folder / "album") as journal:
                journal.snapshot(lambda path: path.write_bytes(content))
            Album(folder / "album").close()

        return fill


def _unpacked(content: bytes, most: int) -> dict[str, bytes]:
    parts: dict[str, bytes] = {}
    if content.count(b"PK\x01\x02") > _ENTRIES:  # before a list is made of them
        raise Refused(_SENTENCE.format("it holds other files"))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = archive.infolist()
            names = [file.filename for file in files]
            if sorted(names) != sorted({_ABOUT, _MODEL, _ALBUM}):
                raise Refused(_SENTENCE.format("it holds other files"))
            for file in files:
                if file.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise Refused(_SENTENCE.format("it is packed in another way"))
                with archive.open(file) as stream:
                    # What a header says of sizes may be a lie: count what comes out.
                    parts[file.filename] = stream.read(most + 1)
                most -= len(parts[file.filename])
                if most < 0:
                    raise TooMuch("the file unpacks to more than this service takes")
    except ServiceError:
        raise
    except Exception as error:  # whatever it holds, it is no archive
        raise Refused(_SENTENCE.format(" ".join(str(error).split()))) from error
    return parts


def _learner(content: bytes) -> Any:
    # A header of nothing but brackets becomes objects of twenty times its size.
    if int.from_bytes(content[:8], "little") > _HEADER:
        raise Refused(_SENTENCE.format("its header is too large"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _MODEL
        path.write_bytes(content)
        try:
            learner = load(path)
        except FileFormatError as error:
            told = str(error).replace(str(path), "the file")
            raise Refused(told) from error
        except Exception as error:  # a header that was made to mislead
            raise Refused(_SENTENCE.format(type(error).__name__)) from error
    if type(learner).__name__ not in _KINDS:  # what can be loaded is imparo's, each name once
        raise Refused(
            f"the file holds a {type(learner).__name__}, and only learners that learn on can "
            f"be imported: {', '.join(_KINDS)}"
        )
    return learner


def _about(content: bytes | None, learner: Any) -> dict[str, Any]:
    about = {"kind": _KINDS[type(learner).__name__], "features": "vectors",
             "n_inputs": None, "n_outputs": None}  # fmt: skip
    if content is not None:
        try:
            given = json.loads(content)
            features = given["features"]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise Refused(_SENTENCE.format("about.json")) from error
        if features not in ("vectors", "pixels", "network"):
            raise Refused(_SENTENCE.format("its features are unknown here"))
        if features != "vectors" and about["kind"] != "classifier":
            raise Refused(_SENTENCE.format("only classifiers learn images"))
        about["features"] = features
    return about


def _album(content: bytes) -> dict[str, Any]:
    try:
        state = decode(content)
        check_album(state)
    except Exception as error:  # whatever it holds, it is no album
        raise Refused(_SENTENCE.format("its pictures and curves")) from error
    return {**state, "keys": []}  # which were for the one that it was


def _tried_out(learner: Any, limits: Limits) -> int:
    """Return the bytes of a learner, or raise unless it works as one of its kind does."""
    try:
        check_learner(learner, limits)
        width = getattr(learner, "n_features_in_", None)
        return max(bytes_of(learner), size_of(learner, width))
    except TooMuch:
        raise
    except Exception as error:
        told = _SENTENCE.format(f"it does not answer: {type(error).__name__}")
        raise Refused(told) from error


def as_file_name(entry: Entry) -> str:
    """Return the name under which a browser keeps an exported learner."""
    return f"{entry.name}.imparo.zip"
