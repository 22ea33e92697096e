"""What the service refuses: messages, names, bodies, images and robots of a wrong form."""

import contextlib
import json
import struct
from pathlib import Path
from urllib.parse import quote

import pytest
import websockets.exceptions
import websockets.sync.client

import imparo
from service_tools import (
    answer_of,
    drawing,
    frame,
    in_process,
    patient_service,
    taught_service,
    upgraded,
)

LOCAL = {"host": "localhost"}

taught = pytest.fixture(scope="module")(taught_service)
patient = pytest.fixture(scope="module")(patient_service)


@pytest.fixture
def client(tmp_path):
    with in_process(tmp_path / "learners") as found:
        yield found


# Messages over WebSockets.

MESSAGES = [
    "", "{", "null", "[]", '"x"', "{}", '{"id": 1}', '{"ask": 1}', '{"teach": null}',
    '{"ask": {"inputs": [1, 2, 3]}, "teach": {"inputs": [1, 2, 3], "labels": "x"}}',
    '{"teach": {"inputs": [1, 2, 3]}}', '{"teach": {"inputs": [NaN, 2, 3], "labels": "mug"}}',
    '{"teach": {"inputs": [1e999, 2, 3], "labels": "mug"}}', "[" * 100_000,
    '{"id": ' + "[" * 900 + "]" * 900 + ', "ask": 1}',
    '{"id": NaN, "ask": {"inputs": [1, 2, 3]}}',
    '{"id": 1e999, "ask": {"inputs": [1, 2, 3]}}', '{"id": ' + "9" * 5000 + "}",
    '{"id": "\\ud800", "\\ud800": 1}', '{"teach": {"inputs": [1, 2, 3], "labels": "\\ud800"}}',
    '{"teach": {"inputs": [1, 2, 3], "labels": "mug", "\\ud800": 1}}',
    '{"ask": {"inputs": [1, 2, 3], "recoding": NaN}}', '{"watch": "maybe"}', "\ufeff{}",
    '{"teach_image": {"label": "x"}}', '{"ask_image": {}}', '{"id": 1, "id": 2}',
    b"", b"\0", b"\0\0\0\0", b"\2\0\0\0{}", b"\xff\xff\xff\xff{}", b"\2\0\0\0{}x",
    struct.pack("<I", 33) + b'{"teach_image": {"label": "mug"}}' + b"no image",
    struct.pack("<I", 33) + b'{"teach_image": {"label": "m\0g"}}',
]  # fmt: skip


@pytest.mark.parametrize("name", ["toys", "drawn", "arm"])
def test_whatever_is_said_over_a_socket_is_answered_in_json_and_changes_nothing(taught, name):
    with taught.websocket_connect(f"/api/learners/{name}/stream", headers=LOCAL) as socket:
        for message in MESSAGES:
            if isinstance(message, str):
                socket.send_text(message)
            else:
                socket.send_bytes(message)
            told = json.loads(socket.receive_text(), parse_constant=pytest.fail)
            assert 400 <= told["status"] < 500, message
        socket.send_text('{"id": "alive", "ask": {"inputs": [1, 2]}}')
        assert socket.receive_json()["id"] == "alive"


def test_a_socket_to_a_learner_of_a_long_foreign_name_is_closed_with_a_sentence(patient):
    address = f"ws://127.0.0.1:{patient.port}/api/learners/{'%E6%97%A5' * 60}/stream"
    with websockets.sync.client.connect(address) as socket:
        assert "no learner" in json.loads(socket.recv())["error"]
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            socket.recv()
        assert socket.close_code == 1008


@pytest.mark.parametrize(
    "frames",
    [b"\xff" * 100, frame(b"x", masked=False), frame(b"\xff\xfe", 1), frame(b"x", 3),
     frame(b"x" * 126, 9), frame(b"a", 0), frame(b"a", 1, final=False) + frame(b"b", 1),
     bytes([0x81, 0xFF]) + b"\x7f" * 8 + b"\0" * 4, frame(b"", 8), frame(b"\x03", 8),
     frame(b"\x03\xe8" + b"\xff" * 9, 8), bytes([0xC1, 0x80, 0, 0, 0, 0])],
)  # fmt: skip
def test_what_is_no_frame_ends_its_socket_and_no_other(patient, frames):
    with upgraded(patient) as bare:
        with contextlib.suppress(ConnectionError):
            bare.sendall(frames)
        answer_of(bare)


# Names and paths.


@pytest.mark.parametrize(
    "name",
    ["..", ".", "../main.js", "..%2fmain.js", "%2e%2e/robot.py", "..\\main.js", "%00",
     "main.js%00",
     "/etc/passwd", "%2Fetc%2Fpasswd", "main.js/", "index.html/..", "MAIN.JS", "%ff", ""],
)  # fmt: skip
def test_only_the_files_of_the_page_are_served(taught, name):
    page = Path(imparo.__file__).parent / "service" / "page"
    answer = taught.get(f"/page/{name}")
    files = {file.read_bytes() for file in page.iterdir()}
    assert answer.status_code == 404 or answer.content in files


NAMES = ["..", ".", "", "a/b", "../x", "a\\b", "a b", "a\0", "a\n", "é", "x" * 65, ".hidden",
"a.b",
         ".making-1", "~", "$HOME", "%2e%2e", "a\ud800"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_is_never_named_as_a_path_is(taught, name):
    sent = json.dumps({"name": name, "kind": "classifier"})
    answer = taught.post(
        "/api/learners", content=sent, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    exported = taught.get("/api/learners/toys/export").content
    shown = name.encode("utf-8", "replace").decode()
    assert (
        taught.post("/api/import", params={"name": shown}, content=exported).status_code == 422
    )
    sent = json.dumps({"other": name})
    merged = taught.post("/api/learners/toys/merge", content=sent,
                         headers={"content-type": "application/json"})  # fmt: skip
    assert merged.status_code == 422


def test_a_name_that_another_file_has_is_refused(client, tmp_path):
    (tmp_path / "learners" / "notes").mkdir()
    (tmp_path / "learners" / "notes" / "mine.txt").write_text("keep")
    for name in ("lock", "notes"):
        answer = client.post("/api/learners", json={"name": name, "kind": "classifier"})
        assert answer.status_code == 409
    assert (tmp_path / "learners" / "notes" / "mine.txt").read_text() == "keep"
    assert client.get("/api/learners").json() == {"learners": []}


@pytest.mark.parametrize("key", ["../about.json", "%2e%2e%2fabout.json", "%00", "0" * 500])
def test_only_pictures_are_served_as_pictures(taught, key):
    assert taught.get(f"/api/learners/drawn/thumbnails/{key}").status_code in (404, 405)


# Bodies that are no JSON, or not the right one.

TEACH = "/api/learners/toys/teach"


@pytest.mark.parametrize(
    "content",
    [b'{"inputs": [0, 0, 0], "labels": "mug", "\\ud800": 1}', b"", b"{", b"[", b"nul", b"\xff",
     b"\0", b"{'inputs': [1]}", b'{"inputs": [1, 2, 3], }',
     b"[" * 100_000, b'{"a":' * 50_000, b"1" * 5000, b'{"inputs": [' + b"9" * 5000 + b"]}",
     b'\xef\xbb\xbf{"inputs": [1', "{}}".encode("utf-16"),
     b'{"labels": "\xff\xfe", "inputs": [1]'],
)  # fmt: skip
def test_what_is_no_json_is_refused(taught, content):
    answer = taught.post(TEACH, content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"inputs": [NaN, 0, 0], "labels": "mug"}',
        b'{"inputs": [1e999, 0, 0], "labels": "mug"}',
        b'{"inputs": [-Infinity, 0, 0], "labels": "mug"}',
        b'{"inputs": [1e300, 0, 0], "labels": "a"}',
        b'{"inputs": [' + b"9" * 400 + b', 0, 0], "labels": "mug"}',
        b'{"inputs": [true, 0, 0], "labels": "mug"}',
        b'{"inputs": ["1", 0, 0], "labels": "mug"}',
        b'{"inputs": [null, 0, 0], "labels": "mug"}', b'{"inputs": [[[0]]], "labels": "mug"}',
        b'{"inputs": [], "labels": "mug"}', b'{"inputs": [[]], "labels": "mug"}',
        b'{"inputs": {}, "labels": "mug"}', b'{"inputs": "abc", "labels": "mug"}',
        b'{"inputs": [[0, 0, 0], [0]], "labels": "mug"}',
        b'{"inputs": [[0, 0, 0], 1], "labels": "a"}',
        b'{"inputs": [0, 0, 0], "labels": "mug", "inputs": [NaN]}',
        b'{"inputs": [0, 0], "labels": "mug"}', b'{"inputs": [0, 0, 0], "labels": []}',
        b'{"inputs": [0, 0, 0], "labels": ["a", "b"]}',
        b'{"inputs": [0, 0, 0], "labels": null}',
        b'{"inputs": [0, 0, 0], "labels": 1.5}', b'{"inputs": [0, 0, 0], "labels": {}}',
        b'{"inputs": [0, 0, 0], "labels": [[]]}',
        b'{"inputs": [0, 0, 0], "labels": "mug", "x": 1}',
        b'{"inputs": [0, 0, 0], "labels": ' + b"9" * 300 + b"}",
        b'{"inputs": [0, 0, 0], "outputs": [1]}', b'{"labels": "mug"}', b'"mug"', b"[]",
        b"null",
    ],
)  # fmt: skip
def test_rows_that_are_none_are_refused(taught, content):
    answer = taught.post(TEACH, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    "label",
    ["", " ", "\t", "\0", "mug\0", "\ud800", "mug\udc00", "a\nb", "a\r\nb", "\x1b[31m",
     "\u202e",
     "\u2028", "x" * 201, "x" * 10**6, "\ufeff", "\x7f"],
)  # fmt: skip
def test_labels_that_cannot_be_shown_are_refused(taught, label):
    headers = {"content-type": "application/json"}
    for path, sent in (
        (TEACH, {"inputs": [0, 0, 0], "labels": label}),
        (TEACH, {"inputs": [[0, 0, 0]] * 2, "labels": ["mug", label]}),
        ("/api/learners/toys/rename", {"label": "mug", "new": label}),
        ("/api/learners/toys/forget", {"label": label}),
        ("/api/learners/toys/rename", {"label": label, "new": "cup"}),
    ):
        answer = taught.post(path, content=json.dumps(sent), headers=headers)
        assert answer.status_code in (400, 413, 422), path
        assert answer.json()["error"].isascii() or answer.json()["error"].isprintable()
    shown = quote(label.encode("utf-8", "surrogatepass")[:4000])
    answer = taught.post(
        f"/api/learners/toys/teach/image?label={shown}",
        content=drawing(), headers={"content-type": "image/png"},
    )  # fmt: skip
    assert answer.status_code == 422


def test_other_charsets_are_read_as_json_is_or_not_at_all(taught):
    sent = '{"inputs": [0, 0, 0]}'
    for charset in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"):
        answer = taught.post("/api/learners/toys/ask", content=sent.encode(charset),
                             headers={"content-type": "application/json"})  # fmt: skip
        assert answer.status_code in (200, 400), charset
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = taught.post(TEACH, content=b'{"inputs": [0, 0, 0], "labels": "mug"}',
                             headers={"content-type": kind})  # fmt: skip
        assert answer.status_code in (400, 415, 422), kind


# Images that are none.


def test_images_that_are_none_are_refused(taught):
    whole = drawing(1)
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    for path in ("teach/image?label=x", "ask/image"):
        for content in (b"", b"no image", whole[:40], whole[: len(whole) // 2], bytes(damaged),
                        b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"GIF89a" + whole,
                        b"PK\3\4",
                        b"\xff\xd8\xff\xe0" + b"\0" * 100, _png(60_000, 60_000), _png(0, 5),
                        b"RIFF\xff\xff\xff\xffWEBPVP8 " + b"\xff" * 50):  # fmt: skip
            answer = taught.post(f"/api/learners/drawn/{path}", content=content,
                                 headers={"content-type": "image/png"})  # fmt: skip
            assert answer.status_code == 422, content[:20]
        for kind in ("text/html", "application/json", "", "image/svg+xml"):
            answer = taught.post(f"/api/learners/drawn/{path}", content=whole,
                                 headers={"content-type": kind})  # fmt: skip
            assert answer.status_code == 415


def _png(width, height):
    import zlib

    def piece(kind, content):
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))  # fmt: skip

    head = piece(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = piece(b"IDAT", zlib.compress(bytes(10**6)))
    return b"\x89PNG\r\n\x1a\n" + head + rows + piece(b"IEND", b"")


# Robots.


@pytest.mark.parametrize(
    "urdf",
    [
        "iCubGazeboV2_5", "/etc/passwd", "file:///etc/passwd", "../robot.urdf", "",
        '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>',
        '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><robot>&b;</robot>',
        '<<!--!DOCTYPE r [<!ENTITY x "y">]><robot/>', "<robot", "<robot/>", "<a>" * 100_000,
        '<robot name="r"><link name="\0"/></robot>', '<robot name="r">\ud800</robot>',
        '<robot name="r"><link name="a"/><joint name="j" type="revolute"><parent link="a"/>'
        '<child link="a"/></joint></robot>',
    ],
)  # fmt: skip
def test_a_robot_is_text_and_names_no_file(taught, urdf):
    new = {"name": "arm2", "kind": "dynamics",
           "parameters": {"model": "P", "robot": {"urdf": urdf}}}  # fmt: skip
    answer = taught.post("/api/learners", content=json.dumps(new),
                         headers={"content-type": "application/json"})  # fmt: skip
    assert answer.status_code == 422
    assert "root:" not in answer.text
