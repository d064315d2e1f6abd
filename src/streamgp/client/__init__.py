"""Clients of a service. They need `pip install 'streamgp[client]'`."""

from streamgp.client.asynchronous import AsyncClient, AsyncRemoteFleet, AsyncRemoteModel
from streamgp.client.errors import ServiceError
from streamgp.client.results import RemotePrediction, RemoteReport
from streamgp.client.synchronous import Client, RemoteFleet, RemoteModel

__all__ = [
    "AsyncClient",
    "AsyncRemoteFleet",
    "AsyncRemoteModel",
    "Client",
    "RemoteFleet",
    "RemoteModel",
    "RemotePrediction",
    "RemoteReport",
    "ServiceError",
]
