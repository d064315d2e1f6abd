"""Access: who asks, and whether they may."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from streamgp.errors import problem
from streamgp.service.engine import Engine
from streamgp.service.problems import RefusedError
from streamgp.service.settings import is_loopback
from streamgp.service.tokens import Scope, owner_of

_bearer = HTTPBearer(auto_error=False, description="A token of this service.")


async def engine_of(request: Request) -> Engine:
    """The engine of the application that a request came to."""
    return request.app.state.engine


def may(scope: Scope) -> Callable[..., Awaitable[None]]:
    """A dependency that lets requests pass whose token has a scope."""

    async def check(
        request: Request,
        given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    ) -> None:
        settings = request.app.state.engine.settings
        if settings.open:
            _check_local(request)
            return
        owner = None if given is None else owner_of(given.credentials, settings.tokens)
        if owner is None:
            raise RefusedError(
                401,
                problem(
                    "a valid token in the header `Authorization: Bearer …`",
                    "none" if given is None else "another one",
                    "Ask the operator for one, made with `streamgp token`.",
                ),
                {"WWW-Authenticate": 'Bearer realm="streamgp"'},
            )
        request.state.owner = owner.name
        if scope not in owner.scopes:
            raise RefusedError(
                403,
                problem(
                    f"a token with the scope {scope.value!r}",
                    f"one with {sorted(each.value for each in owner.scopes)}",
                    "Ask the operator for another.",
                ),
            )

    return check


def _check_local(request: Request) -> None:
    """Without tokens, only requests to this machine by its own name are answered.

    A page of another site can make its own name stand for this machine.
    """
    if not is_loopback(request.url.hostname or ""):
        raise RefusedError(
            403,
            problem(
                "a request to 127.0.0.1 or localhost, to a service without tokens",
                f"one to {request.url.hostname!r}",
                "Start the service with tokens.",
            ),
        )


Reader = Depends(may(Scope.READ))
Writer = Depends(may(Scope.WRITE))
Admin = Depends(may(Scope.ADMIN))
TheEngine = Annotated[Engine, Depends(engine_of)]
