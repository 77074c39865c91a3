"""Headers, the token, and names that are not ours."""

from pathlib import Path

import pytest

from fyke.core.errors import ConfigurationError
from fyke.serve.security import Token
from serve.kit import TOKEN, client

PATHS = (
    "/", "/?q=plum", "/page?url=http://fruit.example/0", "/copy?url=http://fruit.example/0", "/crawl/fruit", "/api",
    "/api/status", "/api/page", "/metrics", "/healthz", "/static/style.css", "/nowhere",
)  # fmt: skip
NAMES = {
    "evil.example": 421, "evil.example:8080": 421, "127.0.0.1.evil.example": 421, "testserver": 421, "": 421,
    "[::1].evil": 421, "[127.0.0.1]evil.com": 421, "127.0.0.1:80:evil": 421,
    "127.0.0.1:8080": 200, "localhost:1": 200, "[::1]:80": 200,
}  # fmt: skip


def test_headers_of_every_answer(plums: Path) -> None:
    with client(plums) as ask:
        for path in PATHS:
            headers = ask.get(path).headers
            policy = headers["content-security-policy"]
            assert "script-src 'self';" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, (
                path
            )
            assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
            assert "set-cookie" not in headers
        raw = ask.get("/raw?url=http://fruit.example/0").headers
        assert raw["content-security-policy"].startswith("sandbox; default-src 'none'; img-src data:;")
        assert raw["x-content-type-options"] == "nosniff"


def test_other_names_are_not_answered(plums: Path) -> None:
    """A page elsewhere whose name is made to lead to this machine gets nothing."""
    with client(plums) as ask:
        for host, status in NAMES.items():
            assert ask.get("/healthz", headers={"Host": host}).status_code == status, host


def test_orders_need_the_token(plums: Path) -> None:
    with client(plums) as ask:
        for fields in ({}, {"token": ""}, {"token": TOKEN[:-1]}, {"token": "ü" * 9}):
            answer = ask.post("/crawl/fruit/order", data={"do": "pause", **fields})
            assert answer.status_code == 403 and "token" in answer.text
        assert ask.get("/crawl/fruit/order", params={"do": "pause", "token": TOKEN}).status_code == 405
        answer = ask.post("/crawl/fruit/order", data={"do": "pause", "token": TOKEN})
        assert answer.status_code == 409 and "No crawl is running" in answer.text
        header = {"X-Fyke-Token": TOKEN, "Accept": "application/json"}
        assert ask.post("/crawl/fruit/order", data={"do": "dance"}, headers=header).status_code == 400
        assert ask.post("/crawl/fruit/order", content=b"x" * (1 << 21), headers=header).status_code == 413
        for body in (b"[1,2]", b"{", b"null", b"[" * 100_000, b"\xff"):
            answer = ask.post(
                "/crawl/fruit/order", content=body, headers={**header, "Content-Type": "application/json"}
            )
            assert answer.status_code == 400 and "error" in answer.json()


def test_tokens() -> None:
    made = Token()
    assert len(made.text) >= 32 and made.text != Token().text and made.fits(made.text)
    assert "…" in repr(made) and made.text not in repr(made)
    with pytest.raises(ConfigurationError):
        Token("short")
