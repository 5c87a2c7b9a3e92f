"""The loopback server by itself: what it takes, what it refuses, what it gives away."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from conftest import run

from browser_eval.server import FormServer, PortInUse, ServerError, form_fields

pytestmark = pytest.mark.browser


async def ask(server: FormServer, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()


def post(path: str, body: bytes, kind: str = "application/x-www-form-urlencoded") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def test_page_and_first_submission() -> None:
    async def main() -> None:
        async with FormServer() as server:
            page = server.publish(lambda action: f"<form action={action}>")
            path = page.url.removeprefix(server.origin)
            answer = await ask(server, get(path))
            assert answer.startswith(b"HTTP/1.1 200 OK")
            assert b"Content-Security-Policy: default-src 'none'" in answer
            submit = f"/submit/{page.token}"
            assert submit.encode() in answer
            assert b"has been received" in await ask(server, post(submit, b"a=1&b=&a=2&c=x%0D%0Ay+%F0%9F%99%82"))
            await ask(server, post(submit, b"a=later"))
            assert page.submission is not None
            assert page.submission.fields == (("a", "1"), ("b", ""), ("a", "2"), ("c", "x\ny 🙂"))
            server.withdraw(page)
            assert b"404" in await ask(server, get(path))

    run(main())


def test_what_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "in" / "style.css").write_text("p {}")

    async def main() -> None:
        async with FormServer() as server:
            page = server.publish(lambda _: "hello", root=tmp_path / "in", path="page.html", policy="")
            base = f"/page/{page.token}"
            assert b"hello" in await ask(server, get(f"{base}/page.html"))
            assert b"p {}" in await ask(server, get(f"{base}/style.css"))
            refused = (
                "/", "/page", "/page/guess/", f"{base}/../secret.txt", f"{base}/%2e%2e/secret.txt", f"{base}/none",
                f"{base}/..%2fsecret.txt", "/static/../server.py", "/static/%2e%2e/server.py", "/static//etc/passwd",
            )  # fmt: skip
            for path in refused:
                answer = await ask(server, get(path))
                assert b" 404 " in answer.split(b"\r\n")[0], path
                assert b"secret" not in answer

    run(main())


def test_bad_requests_do_not_stop_it() -> None:
    async def main() -> None:
        async with FormServer() as server:
            page = server.publish(lambda _: "hello")
            path = page.url.removeprefix(server.origin)
            assert b"400" in await ask(server, b"nonsense\r\n\r\n")
            assert b"413" in await ask(server, b"POST /x HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
            assert b"400" in await ask(server, b"POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n")
            assert b"400" in await ask(server, b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            assert b"404" in await ask(server, b"DELETE " + path.encode() + b" HTTP/1.1\r\nConnection: close\r\n\r\n")
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HT")
            writer.close()  # in the middle of a request
            assert b"hello" in await ask(server, get(path))

    run(main())


def test_port_in_use_is_one_clear_line() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        async def main() -> None:
            async with FormServer(port):
                pass

        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use") as caught:
            run(main())
        assert "\n" not in str(caught.value)


def test_port_out_of_range() -> None:
    async def main() -> None:
        async with FormServer(99999):
            pass

    with pytest.raises(ServerError, match="0 to 65535"):
        run(main())


def test_kinds_of_forms() -> None:
    multipart = (
        b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nx & y\r\nz\r\n'
        b'--B\r\nContent-Disposition: form-data; name="f"; filename="n.txt"\r\n'
        b"Content-Type: text/plain\r\n\r\ndata\r\n--B--\r\n"
    )
    assert form_fields("multipart/form-data; boundary=B", multipart) == [("a", "x & y\r\nz"), ("f", "n.txt")]
    assert form_fields("text/plain", b"a=1=2\r\nb=\r\n") == [("a", "1=2"), ("b", "")]
    assert form_fields("", b"a=%20%2B+") == [("a", " + ")]
    assert form_fields("application/x-www-form-urlencoded", b"") == []
