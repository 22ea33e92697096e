"""Learners over HTTP and WebSockets, and a page to teach them by showing.

Needs ``pip install imparo[service]``. ``imparo serve`` starts it.
"""

from imparo.service.app import create_app
from imparo.service.running import serve
from imparo.service.settings import Limits, Settings, is_local

__all__ = ["Limits", "Settings", "create_app", "is_local", "serve"]
