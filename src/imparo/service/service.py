"""What the routes of one service share: learners, metrics, and the making of features."""

import asyncio
import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from imparo.engine import Array
from imparo.service import images, network
from imparo.service.errors import Busy, Refused, TooMuch, Unavailable, explained
from imparo.service.labels import check_label
from imparo.service.learners import Entry, Learners
from imparo.service.metrics import Metrics
from imparo.service.rates import Arriving, Rates
from imparo.service.rows import Matrix
from imparo.service.schemas import Ask, Teach
from imparo.service.settings import Limits, Settings

# Images that are decoded and looked at at the same time, and that may wait for it.
_HANDS, _QUEUE = 2, 64
# Files of exported learners that are made or sent at the same time.
_EXPORTS = 8
FEATURES = {
    "vectors": "Rows of numbers, whatever they are made of.",
    "pixels": "Drawings, cut out and centred to 28 x 28 pixels.",
    "network": "Photographs, by EfficientNet-Lite0 trained on ImageNet: 1280 numbers.",
}


class Service:
    """Learners, metrics and features of one service.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.limits: Limits = settings.limits
        self.metrics = Metrics()
        self.learners = Learners(settings, self.metrics)
        #: Of all that comes in, messages over sockets too.
        self.rates = Rates(self.limits.rate, 2 * self.limits.rate)
        self.arriving = Arriving(self.limits.arriving_bytes)
        self.opening: asyncio.Task[None] | None = None
        self.robots = 0
        self.sockets = 0
        self.streams: set[Any] = set()
        self.importing, self.exporting = asyncio.Semaphore(1), asyncio.Semaphore(_EXPORTS)
        self._pool = ThreadPoolExecutor(_HANDS, thread_name_prefix="imparo-images")
        self._images = 0
        self._network: network.Network | None = None
        self._loading = threading.Lock()

    def end_soon(self) -> None:
        """Take nothing new, and give what waits a few seconds."""
        self.learners.end_soon()
        for stream in list(self.streams):
            stream.end_soon()

    def close(self) -> None:
        """Finish what waits and make everything durable."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.learners.close()

    # Features of images.

    @staticmethod
    def missing(features: str) -> str | None:
        """Return why features cannot be had here, None if they can."""
        return network.missing() if features == "network" else None

    async def seen(self, entry: Entry, content: bytes) -> tuple[Array, bytes]:
        """Return the features of an image for a learner, and its thumbnail.

        Parameters
        ----------
        entry : Entry
        content : bytes
            JPEG, PNG or WebP.
        """
        kind = entry.about["features"]
        if kind not in ("pixels", "network"):
            raise Refused(
                f"the learner {entry.name!r} takes vectors, not images; make one with "
                'features "network" or "pixels" for them'
            )
        if not content:
            raise Refused("the body is empty; send the bytes of a JPEG, PNG or WebP image")
        if self._images >= _QUEUE:
            raise Busy("too many images are waiting; nothing was done: try again in a second")
        self._images += 1
        try:
            work = functools.partial(self._look, kind, content)
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except images.BadImage as error:
            raise Refused(str(error)) from error
        except Exception as error:  # of a disk, a memory, a package
            raise explained(error) from error
        finally:
            self._images -= 1

    def _look(self, kind: str, content: bytes) -> tuple[Array, bytes]:
        image = images.decode(content, max_pixels=self.limits.image_pixels)
        if kind == "pixels":
            row = images.pixels(image)[None]
        else:
            row = self.network().features([image])
        return row, images.thumbnail(image)

    def network(self) -> network.Network:
        """Return the network, loaded at first use."""
        with self._loading:
            if self._network is None:
                reason = network.missing()
                if reason is not None:
                    raise Unavailable(reason)
                self._network = network.Network()
            return self._network

    # Rows.

    def rows_of(self, sent: Matrix) -> Array:
        """Return rows that were sent, if they are not too many."""
        n, width = sent.rows.shape
        if n > self.limits.rows:
            raise TooMuch(
                f"{n} rows were sent, and the service takes {self.limits.rows} at once; send "
                "them in parts"
            )
        if width > self.limits.columns:
            raise TooMuch(
                f"a row of {width} numbers was sent, and the service takes at most "
                f"{self.limits.columns}"
            )
        return sent.rows

    def lesson_of(self, entry: Entry, sent: Teach) -> tuple[Array, Any]:
        """Return rows, and labels or outputs, as they were sent."""
        X = self.rows_of(sent.inputs)
        if entry.about["kind"] == "classifier":
            if sent.labels is None or sent.outputs is not None:
                raise Refused(f"the learner {entry.name!r} learns labels; send labels")
            return X, self._labels_of(X, sent.labels)
        if sent.outputs is None or sent.labels is not None:
            raise Refused(f"the learner {entry.name!r} learns numbers; send outputs")
        return X, self._outputs_of(sent.inputs, sent.outputs)

    def _labels_of(self, X: Array, sent: Any) -> list[Any]:
        labels = sent if isinstance(sent, list) else [sent] * len(X)
        if len(labels) != len(X):
            raise Refused(
                f"{len(X)} rows came with {len(labels)} labels; send one for each, or one for "
                "all"
            )
        for label in labels:
            check_label(label, self.limits)
        return labels

    def _outputs_of(self, inputs: Matrix, sent: Matrix) -> Array:
        # A flat list is one row for one row, and one number a row for several.
        Y = sent.rows.T if sent.flat and not inputs.flat else sent.rows
        if len(Y) != len(inputs.rows):
            raise Refused(
                f"{len(inputs.rows)} rows came with {len(Y)} outputs; send one for each"
            )
        if Y.shape[1] > self.limits.outputs:
            raise TooMuch(
                f"{Y.shape[1]} outputs were sent, and the service takes at most "
                f"{self.limits.outputs}"
            )
        return Y

    def question_of(self, sent: Ask) -> tuple[Array, float | None, bool]:
        """Return rows to answer, as they were sent, and how."""
        return self.rows_of(sent.inputs), sent.recoding, sent.novelty
