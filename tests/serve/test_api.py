"""The API against its own document, and against what the pages say."""

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks

from fyke.serve.app import application
from fyke.serve.security import Token
from fyke.serve.shelf import Shelf
from search.archives import archive, html
from serve.kit import TOKEN, client


def test_answers(plums: Path) -> None:
    url = "http://fruit.example/0"
    with client(plums) as ask:
        found = ask.get("/api/search", params={"q": "plum", "site": "fruit.example", "limit": 3, "offset": 1}).json()
        assert (found["total"], len(found["hits"]), found["query"]) == (30, 3, "plum")
        assert found["hits"][0]["site"] == "fruit.example" and found["hits"][0]["snippet"] != [True, False]
        page = ask.get("/api/page", params={"url": url}).json()
        assert page["url"] == url and page["copies"][0]["status"] == 200
        links = ask.get("/api/inlinks", params={"url": url, "limit": 5}).json()["links"]
        assert {link["words"] for link in links} == {"the first plum"} and len(links) == 5
        assert ask.get("/api/similar", params={"url": url}).json()["url"] == url
        (status,) = ask.get("/api/status").json()
        assert (status["name"], status["indexed"], status["state"], status["live"]) == ("fruit", True, "none", False)
        assert ask.get("/api/hosts").json() == [] and ask.get("/api/domains").json() == []


def test_mistakes(plums: Path, tmp_path: Path) -> None:
    with client(plums) as ask:
        for path, status in (
            ("/api/page", 422),
            ("/api/page?url=x", 400),
            ("/api/search?limit=0", 422),
            ("/api/search?offset=x", 422),
            ("/api/hosts?crawl=none", 404),
            ("/api/nothing", 404),
        ):
            answer = ask.get(path)
            assert answer.status_code == status and list(answer.json()) == ["error"], path
        assert ask.post("/api/search").status_code == 405
    with client(archive(tmp_path / "new", [("http://a.example/", html("x"))])) as ask:
        answer = ask.get("/api/search?q=x")
        assert answer.status_code == 404 and "fyke index" in answer.json()["error"]


def test_metrics(plums: Path) -> None:
    with client(plums) as ask:
        text = ask.get("/metrics").text
        assert 'fyke_up{crawl="fruit"} 0.0' in text and "# TYPE fyke_pages_total counter" in text
        assert ask.get("/healthz").json() == {"status": "ok", "crawls": 1}


PATHS = ("search", "page", "inlinks", "similar", "status", "hosts", "domains")


@pytest.fixture(scope="module")
def described(plums: Path) -> schemathesis.BaseSchema:
    load_all_checks()
    app = application(Shelf([plums]), Token(TOKEN))
    return schemathesis.openapi.from_asgi("/api/openapi.json", app, headers={"Host": "localhost"})


@pytest.mark.parametrize("path", PATHS)
def test_as_documented(described: schemathesis.BaseSchema, path: str) -> None:
    """Whatever is asked, the answer is one the document promises, and never a fault of ours."""
    operation = described[f"/api/{path}"]["GET"]
    # Whether a text is a URL, or a question that can be asked, is more than a schema can say.
    asked_in_words = path in ("page", "inlinks", "similar", "search")
    beyond = CHECKS.get_by_names(["positive_data_acceptance"]) if asked_in_words else []

    @given(case=operation.as_strategy() | operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE))
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(headers={"Host": "localhost"}, excluded_checks=beyond)

    ask()


@given(q=st.text(max_size=200).map(lambda text: text.replace(":", " ")))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_words_are_never_refused(described: schemathesis.BaseSchema, q: str) -> None:
    """Only a filter (`site:`, `after:`) can ask for what cannot be; all other text is looked for."""
    case = described["/api/search"]["GET"].Case(query={"q": q})
    assert case.call(headers={"Host": "localhost"}).status_code == 200


def test_all_is_documented(described: schemathesis.BaseSchema) -> None:
    assert sorted(described.keys()) == sorted(f"/api/{path}" for path in PATHS)
