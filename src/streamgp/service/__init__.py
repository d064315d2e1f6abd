"""The live service: post observations, read predictions, watch the stream in a browser.

It needs `pip install 'streamgp[service]'`.
"""

from streamgp.service.app import create_app
from streamgp.service.settings import Limits, Settings
from streamgp.service.tokens import Scope, Token, new_token, read_tokens

__all__ = ["Limits", "Scope", "Settings", "Token", "create_app", "new_token", "read_tokens"]
