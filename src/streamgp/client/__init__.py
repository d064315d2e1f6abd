"""Clients of a service. They need `pip install 'streamgp[client]'`."""

from streamgp.client.asynchronous import AsyncClient, AsyncRemoteModel
from streamgp.client.errors import ServiceError
from streamgp.client.results import RemotePrediction, RemoteReport
from streamgp.client.synchronous import Client, RemoteModel

__all__ = [
    "AsyncClient",
    "AsyncRemoteModel",
    "Client",
    "RemoteModel",
    "RemotePrediction",
    "RemoteReport",
    "ServiceError",
]
