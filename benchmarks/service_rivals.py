"""What a careful user would write instead of ``imparo serve``, and what HTTP alone costs.

``python -m benchmarks.service_rivals {http,sgd,sgd-synced} FOLDER`` serves on a free port,
which it prints; :mod:`benchmarks.service` starts each and sends what it sends to imparo.
"""

import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

#: By its name on the command line: what the table calls it.
RIVALS = {
    "http": "HTTP alone",
    "sgd": "FastAPI + SGD",
    "sgd-synced": "the same, synced",
}
# A new class would be an error: all must be known before the first example.
CLASSES = [f"class {k}" for k in range(10)]


def main() -> None:
    import uvicorn

    kind, folder = sys.argv[1], Path(sys.argv[2])
    app = _http if kind == "http" else _sgd(folder, synced=kind == "sgd-synced")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(100)
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
        uvicorn.Server(config).run([listening])


async def _http(scope: dict[str, Any], receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    content = b'{"n_seen":0}' if not body else b'{"number":1,"n_seen":1,"answers":[null]}'
    headers = [(b"content-type", b"application/json"),
               (b"content-length", str(len(content)).encode())]  # fmt: skip
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _sgd(folder: Path, synced: bool) -> Any:
    """Return the application of a page of FastAPI's tutorial, with a lock."""
    from fastapi import FastAPI
    from pydantic import BaseModel
    from sklearn.linear_model import SGDClassifier

    class Question(BaseModel):
        inputs: list[float]

    class Lesson(Question):
        labels: str

    folder.mkdir(exist_ok=True)
    path = folder / "examples.jsonl"
    model, lock = SGDClassifier(loss="log_loss"), threading.Lock()
    seen = sum(1 for _ in path.open()) if path.exists() else 0
    log = path.open("a")
    app = FastAPI()

    @app.post("/api/learners/load/teach")
    def teach(sent: Lesson) -> dict[str, Any]:
        nonlocal seen
        X = np.array([sent.inputs])
        with lock:
            answers = model.predict(X).tolist() if seen else [None]
            model.partial_fit(X, [sent.labels], classes=CLASSES)
            if synced:
                log.write(json.dumps([sent.inputs, sent.labels]) + "\n")
                log.flush()
                os.fsync(log.fileno())
            seen += 1
            return {"n_seen": seen, "answers": answers}

    @app.post("/api/learners/load/ask")
    def ask(sent: Question) -> dict[str, Any]:
        X = np.array([sent.inputs])
        with lock:
            (p,) = model.predict_proba(X)
        best = int(np.argmax(p))
        told = {"answers": [CLASSES[best]], "confidence": [float(p[best])]}
        return {**told, "classes": CLASSES, "probabilities": [p.tolist()]}

    @app.get("/api/learners/load")
    def state() -> dict[str, Any]:
        return {"n_seen": seen}

    return app


if __name__ == "__main__":
    main()
