"""Client: a service from a program that waits for answers."""

import time
from pathlib import Path
from typing import Any

import httpx

import streamgp as sgp
from streamgp.client import calls
from streamgp.client.calls import Call
from streamgp.client.errors import ServiceError


class Client:
    """A service.

    Requests that fail for a while are sent again, observations with the same idempotency key, so
    that the service learns them once.

    Args:
        url: The address of the service, such as "http://127.0.0.1:8080".
        token: A token of the service, if it asks for one.
        attempts: How often a request is sent at most.
        timeout: How many seconds an answer may take.
        longest_pause: How many seconds lie between two attempts at most.

    Examples:
        >>> client = Client("http://127.0.0.1:8080", "a token")
        >>> client.model("plant")
        <RemoteModel plant>
        >>> client.close()
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        attempts: int = 8,
        timeout: float = 60.0,
        longest_pause: float = 30.0,
    ):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        self._attempts, self._longest = attempts, longest_pause

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def models(self) -> list[str]:
        """The names of the models."""
        return self.call(calls.models())

    def model(self, name: str) -> "RemoteModel":
        """A model by name. Nothing is asked yet."""
        return RemoteModel(self, name)

    def member(self, fleet: str, key: str) -> "RemoteModel":
        """A model of a fleet. It begins with its first update."""
        return RemoteModel(self, fleet, key)

    def create(self, name: str, channels: dict[str, Any], **tables: Any) -> "RemoteModel":
        """Make a model.

        Args:
            name: Of the model.
            channels: The kind of each channel, by name, as in a TOML configuration.
            **tables: The tables `data`, `model` and `stream`.

        Returns:
            The model.

        Raises:
            ServiceError: If the service refuses it.
        """
        self.call(calls.create(name, {"channels": channels, **tables}))
        return self.model(name)

    def fleet(self, name: str) -> "RemoteFleet":
        """A fleet by name. Nothing is asked yet."""
        return RemoteFleet(self, name)

    def create_fleet(
        self, name: str, channels: dict[str, Any], *, population: bool = True, **tables: Any
    ) -> "RemoteFleet":
        """Make a fleet: models by key that share a specification.

        Args:
            name: Of the fleet.
            channels: The kind of each channel, by name, as in a TOML configuration.
            population: Whether new keys start from what the others have learned.
            **tables: The tables `data`, `model` and `stream`.

        Returns:
            The fleet.

        Raises:
            ServiceError: If the service refuses it.
        """
        said = {"channels": channels, "population": population, **tables}
        self.call(calls.create_fleet(name, said))
        return self.fleet(name)

    def upload(self, name: str, model: sgp.ContinualGP) -> "RemoteModel":
        """Give the service a model that was made elsewhere."""
        self.call(calls.upload(calls.path_of(name), model.to_bytes()))
        return self.model(name)

    def call(self, call: Call) -> Any:
        """Send a request, several times if need be."""
        for attempt in range(self._attempts):
            last = attempt + 1 == self._attempts
            try:
                response = self._http.request(
                    call.method, call.path, json=call.json, content=call.content,
                    headers=dict(call.headers),
                )  # fmt: skip
            except httpx.TransportError as error:
                unsent = isinstance(error, httpx.ConnectError)
                if last or not (unsent or calls.is_worth_repeating(call, None)):
                    raise ServiceError(f"the service cannot be reached: {error}") from error
                time.sleep(calls.pause(attempt, self._longest))
                continue
            if last or not calls.is_worth_repeating(call, response.status_code):
                break
            time.sleep(calls.pause(attempt, self._longest, response.headers.get("retry-after")))
        return calls.result_of(call, response)


class RemoteModel:
    """A model of a service, with the verbs of `ContinualGP`."""

    def __init__(self, client: Client, *names: str):
        self._client, self._names, self._path = client, names, calls.path_of(*names)

    def __repr__(self) -> str:
        return f"<RemoteModel {'/'.join(self._names)}>"

    def update(self, data: Any, *, key: str | None = None) -> Any:
        """Send observations. They are on disk when this returns.

        Args:
            data: A pandas or polars frame, or a list of rows (dictionaries).
            key: An idempotency key, without spaces; by default a new one. Give your own to send a
                batch again after this program was stopped.

        Returns:
            A `RemoteReport`.

        Raises:
            ServiceError: If the service refuses them.
        """
        return self._client.call(calls.update(self._path, data, key))

    def predict(self, x: Any, channel: str | None = None, **options: Any) -> Any:
        """Predict at some inputs.

        Args:
            x: A list or an array of inputs, or a frame with the input columns.
            channel: The name of one channel; by default all of them.
            **options: `level`, `quantiles`, `calibrated` and `components`.

        Returns:
            A `RemotePrediction`, or a dictionary of them by channel.
        """
        asked = {"inputs": calls.inputs_of(x), **options}
        return self._client.call(calls.predict(self._path, channel, asked))

    def forecast(self, ahead: Any, every: Any, channel: str | None = None, **options: Any) -> Any:
        """Predict after the latest input, at equal steps. The arguments are those of the model."""
        asked = {"ahead": ahead, "every": every, **options}
        return self._client.call(calls.predict(self._path, channel, asked))

    def describe(self) -> dict[str, Any]:
        """What the model is and how far it has come."""
        return self._client.call(calls.get(self._path))

    def report(self) -> dict[str, Any]:
        """The report of the last update."""
        return self._client.call(calls.get(self._path, "/report"))

    def history(self) -> dict[str, Any]:
        """Numbers of earlier updates, by column."""
        return self._client.call(calls.get(self._path, "/history"))["columns"]

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Every hyperparameter, in the units of the data."""
        return self._client.call(calls.get(self._path, "/hyperparameters"))["hyperparameters"]

    def download(self) -> sgp.ContinualGP:
        """The model itself, for use on this machine."""
        return sgp.from_bytes(self._client.call(calls.download(self._path)))

    def save(self, path: str | Path) -> None:
        """Write the model's file, for `streamgp.load`."""
        Path(path).write_bytes(self._client.call(calls.download(self._path)))

    def delete(self) -> None:
        """Delete the model."""
        self._client.call(calls.delete(self._path))


class RemoteFleet:
    """A fleet of a service: models by key."""

    def __init__(self, client: Client, name: str):
        self._client, self._name = client, name

    def __repr__(self) -> str:
        return f"<RemoteFleet {self._name}>"

    def __getitem__(self, key: str) -> RemoteModel:
        return self._client.member(self._name, key)

    def keys(self) -> list[str]:
        """The first thousand keys that have a model, in order."""
        return self._client.call(calls.keys(self._name))

    def update(self, data: Any, *, key: str, request: str | None = None) -> Any:
        """Send observations of any number of keys. They are on disk when this returns.

        Args:
            data: A pandas or polars frame, or a list of rows (dictionaries).
            key: The column that has the keys.
            request: An idempotency key; by default a new one.

        Returns:
            A `RemoteReport`. Its `errors` have what went wrong, by key.

        Raises:
            ServiceError: If the service refuses them as a whole.
        """
        return self._client.call(calls.update_keys(self._name, data, key, request))
