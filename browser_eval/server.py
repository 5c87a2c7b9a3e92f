"""The loopback server: it serves a task's page under an unguessable token and records the first submission it receives.

Written on asyncio's streams: a handful of routes on 127.0.0.1 for a browser of our own is all it has to do.
"""

from __future__ import annotations

import asyncio
import errno
import mimetypes
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from browser_eval.html import POLICY, RECEIVED

STATIC = Path(__file__).parent / "static"
MAX_BODY = 32 * 1024 * 1024
_MAX_HEADERS = 64 * 1024


class ServerError(RuntimeError):
    """The server cannot do what was asked; one line."""


class PortInUse(ServerError):
    """The port that was asked for is taken."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A form as it arrived: names and values in order, every line break as one LF."""

    fields: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Served:
    """A page that is being served.

    Attributes:
        token: The unguessable part of its address.
        html: The page.
        root: Folder whose files are served beside it, if any.
        path: The page's own path below the token; relative links start from there.
        policy: Content security policy, or "" for pages that were written without one in mind.
        submission: The first submission received.
    """

    token: str
    html: bytes
    url: str
    path: str = ""
    root: Path | None = None
    policy: str = POLICY
    submission: Submission | None = None
    received: asyncio.Event = field(default_factory=asyncio.Event)

    def texts(self, urls: Iterable[str]) -> list[str]:
        """The texts of those of these addresses that are files beside this page; of at most 2 MB each."""
        found = []
        base = self.url.removesuffix(self.path)
        for url in urls:
            if self.root is None or not url.startswith(base):
                continue
            file = (self.root / unquote(urlsplit(url.removeprefix(base)).path)).resolve()
            if file.is_relative_to(self.root.resolve()) and file.is_file() and file.stat().st_size <= 2_000_000:
                found.append(file.read_text("utf-8", "replace"))
        return found

    def receive(self, fields: list[tuple[str, str]]) -> None:
        """Record a submission; only the first counts."""
        if self.submission is None:
            plain = ((k, v.replace("\r\n", "\n").replace("\r", "\n")) for k, v in fields)
            self.submission = Submission(tuple(plain))
            self.received.set()


class FormServer:
    """Serves pages on 127.0.0.1. Use as an async context manager.

    Args:
        port: A port of one's choice; 0 takes a free one.
    """

    def __init__(self, port: int = 0) -> None:
        self._wanted = port
        self._server: asyncio.Server | None = None
        self._pages: dict[str, Served] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def origin(self) -> str:
        """`http://127.0.0.1:port`."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> FormServer:
        try:
            self._server = await asyncio.start_server(self._client, "127.0.0.1", self._wanted, limit=_MAX_HEADERS)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(
                    f"port {self._wanted} on 127.0.0.1 is in use: stop what holds it, or choose 0 for a free one"
                ) from None
            raise ServerError(f"cannot listen on 127.0.0.1:{self._wanted}: {error.strerror or error}") from None
        except OverflowError:
            raise ServerError(f"port must be 0 to 65535, got {self._wanted}") from None
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            # Connections that the browser keeps open would keep `wait_closed` waiting.
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.wait_closed()

    def publish(
        self, make: Callable[[str], str], *, root: Path | None = None, path: str = "", policy: str = POLICY
    ) -> Served:
        """Serve a page until `withdraw`.

        Args:
            make: Given the address for submissions, the HTML.
            root: Folder whose files are served beside the page.
            path: Where in `root` the page stands.
            policy: Content security policy.

        Returns:
            The page with its address.
        """
        token = secrets.token_urlsafe(18)
        html = make(f"/submit/{token}").encode("utf-8", "replace")
        served = Served(token, html, f"{self.origin}/page/{token}/{path}", path, root, policy)
        self._pages[token] = served
        return served

    def withdraw(self, served: Served) -> None:
        """Stop serving a page."""
        self._pages.pop(served.token, None)

    # --- HTTP -----------------------------------------------------------------------------------------------------

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the browser went away in the middle of a request: nobody to answer
        except asyncio.CancelledError:
            pass  # the server is closing
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        parts = line.decode("latin-1").split(" ")
        if len(parts) != 3:
            self._answer(writer, 400, b"bad request")
            return False
        method, target, _version = parts
        headers = BytesParser().parsebytes(rest, headersonly=True)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or "transfer-encoding" in headers:
            self._answer(writer, 400, b"bad request")
            return False
        if int(length) > MAX_BODY:
            self._answer(writer, 413, b"the form is too large")
            return False
        body = await reader.readexactly(int(length))
        self._route(writer, method, target, headers, body)
        await writer.drain()
        return headers.get("connection", "").lower() != "close"

    def _route(self, writer: asyncio.StreamWriter, method: str, target: str, headers: Message, body: bytes) -> None:
        address = urlsplit(target)
        _, kind, *rest = address.path.split("/", 3)
        if kind == "static" and method == "GET":
            self._file(writer, STATIC, "/".join(rest))
            return
        served = self._pages.get(rest[0]) if rest else None
        if served is None or kind not in ("page", "submit") or method not in ("GET", "POST"):
            self._answer(writer, 404, b"not found")
            return
        path = unquote(rest[1]) if len(rest) > 1 else ""
        if method == "POST":
            served.receive(form_fields(headers.get("content-type", ""), body))
            self._answer(writer, 200, RECEIVED.encode(), policy=POLICY)
        elif path == served.path and address.query:
            served.receive(parse_qsl(address.query, keep_blank_values=True))
            self._answer(writer, 200, RECEIVED.encode(), policy=POLICY)
        elif path == served.path:
            self._answer(writer, 200, served.html, policy=served.policy)
        elif served.root is not None:
            self._file(writer, served.root, path)
        else:
            self._answer(writer, 404, b"not found")

    def _file(self, writer: asyncio.StreamWriter, root: Path, path: str) -> None:
        file = (root / path).resolve()
        if not file.is_relative_to(root.resolve()) or not file.is_file():
            self._answer(writer, 404, b"not found")
            return
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        self._answer(writer, 200, file.read_bytes(), kind=kind)

    def _answer(
        self, writer: asyncio.StreamWriter, status: int, body: bytes, *, kind: str = "text/html", policy: str = ""
    ) -> None:
        kind = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
        reason = {200: "OK", 400: "Bad Request", 404: "Not Found", 413: "Content Too Large"}[status]
        lines = [
            f"HTTP/1.1 {status} {reason}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            "X-Content-Type-Options: nosniff",
            "Referrer-Policy: no-referrer",
            # Style and script may be kept between episodes; a page never is.
            "Cache-Control: no-store" if kind.startswith("text/html") else "Cache-Control: max-age=3600",
        ]
        if policy:
            lines.append(f"Content-Security-Policy: {policy}")
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)


def form_fields(content_type: str, body: bytes) -> list[tuple[str, str]]:
    """Names and values of a submitted form: urlencoded, multipart, or plain text."""
    header = Message()
    header["content-type"] = content_type or "application/x-www-form-urlencoded"
    kind = header.get_content_type()
    if kind == "multipart/form-data":
        message = BytesParser().parsebytes(b"content-type: " + content_type.encode("latin-1") + b"\r\n\r\n" + body)
        parts = message.get_payload()
        fields = []
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, Message):
                name = part.get_param("name", header="content-disposition")
                file = part.get_filename()
                data = part.get_payload(decode=True)
                text = data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
                fields.append((str(name), file if file is not None else text))
        return fields
    if kind == "text/plain":
        pairs = (line.partition("=") for line in body.decode("utf-8", "replace").split("\r\n") if line)
        return [(name, value) for name, _, value in pairs]
    return parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True)
