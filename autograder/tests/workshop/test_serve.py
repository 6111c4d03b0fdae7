"""`make serve`: the book compressed, its own page for a wrong address, and a busy port told before one."""

import gzip
import http.client
import threading

import pytest

from workshop import serve


@pytest.fixture
def served(tmp_path):
    """ask(path, **headers) -> status, headers and body, of a book of two files and a 404 page."""
    (tmp_path / "index.html").write_text("<h1>The book</h1>" * 100)
    (tmp_path / "picture.png").write_bytes(bytes(range(256)))
    (tmp_path / "404.html").write_text("<h1>No such page</h1>")
    server = serve.server(0, tmp_path)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def ask(path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        connection.request(
            "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, reply.headers, body

    yield ask
    server.shutdown()
    server.server_close()


def test_text_is_compressed_for_who_takes_it_and_whole_for_who_does_not(served):
    status, headers, body = served("/", Accept_Encoding="gzip, br")
    assert (status, headers["Content-Encoding"]) == (200, "gzip")
    assert len(body) < 100
    assert gzip.decompress(body) == b"<h1>The book</h1>" * 100
    status, headers, body = served("/index.html?v=1")
    assert (status, headers["Content-Encoding"], len(body)) == (200, None, 1700)
    assert headers["Content-Type"].startswith("text/html")


def test_a_picture_goes_out_as_it_is(served):
    status, headers, body = served("/picture.png", Accept_Encoding="gzip")
    assert (status, headers["Content-Encoding"], body) == (200, None, bytes(range(256)))


def test_a_wrong_address_gets_the_books_own_page_and_404(served):
    status, _, body = served("/chapters/13-nothing.html", Accept_Encoding="gzip")
    assert (status, body) == (404, b"<h1>No such page</h1>")


def test_no_file_outside_the_book_is_served(served, tmp_path):
    (tmp_path.parent / "secret.html").write_text("secret")
    assert served("/../secret.html")[0] == 404
    assert served("/%2e%2e/secret.html")[0] == 404


def test_a_busy_port_is_told_before_any_address(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "_build/html").mkdir(parents=True)
    (tmp_path / "_build/html/index.html").write_text("the book")
    with serve.server(0) as taken:
        port = taken.server_port
        assert serve.main([str(port)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"make: could not serve at port {port} (Address already in use)")
    assert f"PORT={port + 1}" in said.err


def test_without_a_book_it_says_how_to_make_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert serve.main([]) == 1
    assert capsys.readouterr().err == "make: there is no book in _build/html yet; run make course\n"
