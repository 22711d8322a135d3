"""Servers of traces, over HTTP: for external profilers, and for Perfetto.

TensorBoard's protocol needs gRPC and messages of XLA; here a browser, or `curl`, is enough.
"""

from __future__ import annotations

import threading
import urllib.parse
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PERFETTO = "https://ui.perfetto.dev"
_PERFETTO_PORT = 9001  # the one that Perfetto's page may load from


class TraceServer:
    """Answers `GET /trace?milliseconds=N` on this machine with a trace of the next N milliseconds.

    Args:
        port: Where to listen; 0 for any free port.
        record: Records for so many seconds, and returns the file.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, port: int, record: Callable[[float], bytes]):
        class Handler(_Handler):
            def do_GET(self) -> None:
                address = urllib.parse.urlsplit(self.path)
                if address.path != "/trace":
                    self.send_error(404, "ask for /trace?milliseconds=1000")
                    return
                asked = urllib.parse.parse_qs(address.query).get("milliseconds", ["1000"])[0]
                try:
                    seconds = float(asked) / 1e3
                    if not 0 < seconds <= _LONGEST_SECONDS:
                        raise ValueError(asked)
                except ValueError:
                    self.send_error(400, f"milliseconds are from 1 to {_LONGEST_SECONDS * 1000}")
                    return
                try:
                    content = record(seconds)
                except RuntimeError as error:
                    self.send_error(409, str(error).splitlines()[0])
                    return
                self.answer(content)

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="axir-profiler-server", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Listens no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_LONGEST_SECONDS = 600


class _Handler(BaseHTTPRequestHandler):
    """Answers with a trace, and logs nothing."""

    def answer(self, content: bytes) -> None:
        """Sends a trace file that any page may read."""
        self.send_response(200)
        self.send_header("Content-Type", "application/gzip")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Access-Control-Allow-Origin", _PERFETTO)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Prints nothing: the output belongs to the user's program."""


def serve_to_perfetto(content: bytes, name: str, say: Callable[[str], None] = print) -> None:
    """Prints a link to Perfetto's page with a trace, and waits until it is opened."""
    is_fetched = threading.Event()

    class Handler(_Handler):
        def do_GET(self) -> None:
            self.answer(content)
            is_fetched.set()

    server = ThreadingHTTPServer(("127.0.0.1", _PERFETTO_PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        say(f"Open {_PERFETTO}/#!/?url=http://127.0.0.1:{_PERFETTO_PORT}/{name}")
        is_fetched.wait()
    finally:
        server.shutdown()
        server.server_close()
