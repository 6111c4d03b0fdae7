"""`make serve`: serves the built book at http://127.0.0.1:8000, compressed as by a web server.

    python -m workshop.serve [port]

It needs no package. Text is sent as gzip to browsers that accept it, each file compressed once; an unknown
address gets the book's 404 page.
"""

from __future__ import annotations

import functools
import gzip
import io
import sys
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HTML = Path("_build/html")
TEXT = {".html", ".css", ".js", ".svg", ".json", ".txt", ".md", ".xml", ".ipynb"}


@functools.lru_cache(maxsize=512)
def compressed(path: Path, changed: int) -> bytes:
    """The file as gzip. changed: its modification time in ns, part of the cache's key."""
    return gzip.compress(path.read_bytes(), compresslevel=6, mtime=0)


class BookHandler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send_head(self):
        path = Path(self.translate_path(self.path.partition("?")[0]))
        path = path / "index.html" if path.is_dir() and self.path.endswith("/") else path
        if path.is_file() and path.suffix in TEXT and "gzip" in self.headers.get("Accept-Encoding", ""):
            return self.send_compressed(HTTPStatus.OK, path)
        return super().send_head()

    def send_compressed(self, status: HTTPStatus, path: Path) -> io.BytesIO:
        body = compressed(path, path.stat().st_mtime_ns)
        self.send_response(status)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        return io.BytesIO(body)

    def send_error(self, code, message=None, explain=None):
        page = Path(self.directory) / "404.html"
        if code != HTTPStatus.NOT_FOUND or not page.is_file() or self.command != "GET":
            return super().send_error(code, message, explain)
        body = page.read_bytes()
        self.send_response(code, message)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        """No log of requests on the terminal."""


def server(port: int, html: Path = HTML) -> ThreadingHTTPServer:
    """A server bound to the port (0: any free one), to be started by serve_forever(). Raises OSError."""
    return ThreadingHTTPServer(("127.0.0.1", port), functools.partial(BookHandler, directory=str(html)))


def main(arguments: list[str]) -> int:
    port = int(arguments[0]) if arguments else 8000
    if not (HTML / "index.html").is_file():
        print("make: there is no book in _build/html yet; run make course", file=sys.stderr)
        return 1
    try:
        book = server(port)
    except (OSError, OverflowError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        print(
            f"make: could not serve at port {port} ({reason}); try make serve PORT={port + 1}",
            file=sys.stderr,
        )
        return 1
    print(f"the book is at http://127.0.0.1:{port} (Ctrl-C stops)", flush=True)
    try:
        book.serve_forever()
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
