"""The live service: post observations, read predictions, watch the stream in a browser.

It needs `pip install 'streamgp[service]'`.
"""

from streamgp.service.app import create_app
from streamgp.service.server import Listening, log_to_stderr, server
from streamgp.service.settings import Limits, Settings
from streamgp.service.tokens import Scope, Token, append_token, new_token, read_tokens

__all__ = [
    "Limits",
    "Listening",
    "Scope",
    "Settings",
    "Token",
    "append_token",
    "create_app",
    "log_to_stderr",
    "new_token",
    "read_tokens",
    "server",
]
