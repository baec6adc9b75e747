"""How long and how often one may hold the server's line: half-sent requests end, and many of them lock nobody out."""

from typing import TYPE_CHECKING, Any

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from asyncio import Transport

# Each costs a few kilobytes; beyond it new ones are answered with 503.
MOST_CONNECTIONS = 512
# A connection that is between requests, or in the middle of a request's header, for two looks in a row is closed.
SECONDS_BETWEEN_LOOKS = 5.0


class ImpatientProtocol(H11Protocol):
    """uvicorn waits for ever for the rest of a header; this does not."""

    def connection_made(self, transport: "Transport") -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._look_later(idle_before=False)

    def _look_later(self, idle_before: bool) -> None:
        self.loop.call_later(SECONDS_BETWEEN_LOOKS, self._look, idle_before)

    def _look(self, idle_before: bool) -> None:
        if self.transport.is_closing():
            return
        idle = self.cycle is None or self.cycle.response_complete
        if idle and idle_before:
            self.transport.close()
        else:
            self._look_later(idle)


def server_config(app: Any, host: str, port: int) -> Config:
    return Config(
        app,
        host=host,
        port=port,
        http=ImpatientProtocol,
        log_level="warning",
        limit_concurrency=MOST_CONNECTIONS,
        server_header=False,
        ws="none",
    )
