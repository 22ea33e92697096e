"""What the tests of journals share: states, their files, and what is done to them."""

import json

from imparo.journal import Journal

HEAD = 24  # bytes of a record beside its payload
START = 33  # bytes of a segment before its first record


# The state of these tests is the list of all payloads; a snapshot is that list.


def keep(state):
    return lambda path: path.write_text(json.dumps([payload.hex() for payload in state]))


def kept(path):
    return [bytes.fromhex(text) for text in json.loads(path.read_text())] if path else []


def history(journal):
    state = kept(journal.snapshot_path)
    assert len(state) == journal.snapshot_number
    for number, payload in journal.records():
        state.append(payload)
        assert number == len(state)
    return state


def reopened(folder, writable=True):
    with Journal(folder, writable=writable) as journal:
        return history(journal)


def filled(folder, payloads, **options):
    with Journal(folder, **options) as journal:
        for payload in payloads:
            journal.append(payload)


def segments(folder):
    return sorted(folder.glob("records-*"))


def snapshots(folder):
    return sorted(folder.glob("snapshot-*"))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def flip(path, place, bits=0xFF):
    content = bytearray(path.read_bytes())
    content[place] ^= bits
    path.write_bytes(content)
