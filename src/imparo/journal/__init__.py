"""A folder that keeps what it was told: numbered records, snapshots, recovery.

:class:`Journal` writes each record to disk before it acknowledges it, replaces old records by
snapshots, and finds its way back after a crash or a power cut. It knows nothing of models:
records are bytes, which :func:`encode` and :func:`decode` make of dictionaries.
"""

from imparo.journal.encoding import decode, encode
from imparo.journal.journal import Journal, Update
from imparo.journal.segments import Cut

__all__ = ["Cut", "Journal", "Update", "decode", "encode"]
