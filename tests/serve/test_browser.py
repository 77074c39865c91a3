"""As a person's browser has it: Chromium, our scripts, other people's pages, a crawl that runs."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from crawl.runs import begin, crawl, fyke, settings, wait_for
from fyke.archive.orders import SOCKET
from fyke.lab import simweb
from fyke.lab.simweb.child import running_web
from search.archives import archive, html
from serve.hostile import MARK, hostile_visits
from serve.kit import CHROMIUM, TOKEN, needs_browser, served

OPENED = ("/script", "/svg", "/svg-file", "/xhtml", "/refresh", "/loads", "/links")  # also without the frame

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def until(page: Any, true: str, timeout_ms: int = 15_000) -> None:
    """Wait until the expression `true` is; our policy forbids Playwright's own way, to evaluate text in the page."""
    from playwright.sync_api import Error

    trouble = ""
    for _ in range(timeout_ms // 50):
        try:
            if page.evaluate(true):
                return
        except Error as error:  # what it asks for may not be there yet, or the page may be about to go
            trouble = f": {error}"
        page.wait_for_timeout(50)
    raise TimeoutError(f"{true}{trouble}")


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    yield context.new_page()
    context.close()


def test_search_filter_and_open_a_copy(page: Any, plums: Path) -> None:
    """By keyboard alone, from the box to the archived page."""
    with served(plums) as base:
        page.goto(base)
        page.keyboard.type("plum")  # the box has the focus
        page.keyboard.press("Enter")
        page.wait_for_selector(".hit")
        assert page.locator(".hit").count() == 5
        page.wait_for_load_state()  # until then nobody listens to keys
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "q"
        page.locator("summary", has_text="Filters").click()
        page.select_option("#lang", "de")
        page.get_by_role("button", name="Search").click()
        page.wait_for_url("**lang=de**")
        assert page.locator(".hit").count() == 1
        page.get_by_role("link", name="Pflaumen", exact=True).click()
        frame = page.frame_locator("iframe")
        assert "Pflaume ist eine Frucht" in frame.locator("body").inner_text()
        assert "http://obst.example/" in page.locator("header").inner_text()
        assert page.get_by_role("link", name="Live page").get_attribute("href") == "http://obst.example/"


def test_works_without_script(browser: Any, plums: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    with served(plums) as base:
        page.goto(base)
        page.fill("#q", "plum")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="28 more from fruit.example").click()
        page.get_by_role("link", name="Next").click()
        assert page.locator(".hit").count() == 10
        assert page.goto(f"{base}crawl/fruit").status == 200
    context.close()


def test_phones_need_no_sideways_scrolling(browser: Any, plums: Path, hostile: Path) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 640}, color_scheme="dark")
    page = context.new_page()
    with served(plums, hostile) as base:
        for path in ("", f"?q={MARK}", "?q=plum&lang=en", "crawl", "crawl/fruit", "crawl/fruit/host/fruit.example",
                     "api", "page?url=http://bad.example/long", "copy?url=http://bad.example/long"):  # fmt: skip
            page.goto(base + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    context.close()


OUTSIDE = """() => [...document.querySelectorAll("caption, figcaption, h1, h2, h3, th, td, dt, dd, button")]
    .map((one) => [one.textContent, one.getBoundingClientRect()])
    .filter(([_, box]) => box.width && (box.left < 0 || box.right > document.documentElement.clientWidth))
    .map(([words]) => words)"""


@pytest.mark.parametrize("width", [320, 400])
def test_on_a_phone_the_bar_of_a_copy_is_whole(browser: Any, tmp_path: Path, width: int) -> None:
    url = "http://a.example/"
    made = archive(tmp_path / "crawl", [(url, html("old")), (url, html("new"))])
    context = browser.new_context(viewport={"width": width, "height": 640})
    page = context.new_page()
    with served(made) as base:
        page.goto(f"{base}copy?url={url}")
        assert page.locator("nav details").count() == 1
        boxes = [link.bounding_box() for link in page.locator("nav > a").all()]
        assert len(boxes) == 4 and all(box["x"] + box["width"] <= width for box in boxes)
    context.close()


LANDMARKS = """() => [...document.querySelectorAll("section[aria-labelledby], [role=region]")].map((one) =>
    one.getAttribute("aria-label") ?? document.getElementById(one.getAttribute("aria-labelledby")).textContent)"""


def test_landmarks_can_be_told_apart(page: Any, plums: Path) -> None:
    with served(plums) as base:
        for path in ("", "?q=plum", "crawl/fruit", "crawl/fruit/hosts", "crawl/fruit/host/fruit.example",
                     "page?url=http://fruit.example/0", "copy?url=http://fruit.example/0", "api"):  # fmt: skip
            page.goto(base + path)
            names = page.evaluate(LANDMARKS)
            assert len(names) == len(set(names)), (path, names)


@pytest.mark.parametrize("width", [360, 400])
def test_on_a_phone_nothing_is_cut(browser: Any, tmp_path: Path, width: int) -> None:
    """Captions and every cell of a table are in the window, of the dashboard and of the report."""
    with running_web(simweb.plain(pages=60, hosts=8, seed=5)) as web:
        config = settings(tmp_path, web, crawl={"scope": "web"})
        assert crawl(tmp_path / "web", config, *web.seeds[:1]).status == 0
    assert fyke("report", str(tmp_path / "web")).returncode == 0
    context = browser.new_context(viewport={"width": width, "height": 640})
    page = context.new_page()
    with served(tmp_path / "web") as base:
        dashboard = f"{base}crawl/web"
        page.goto(f"{dashboard}/hosts")
        host = page.locator("tbody a").first.get_attribute("href")
        for url in (dashboard, f"{dashboard}/hosts", f"{base}{host[1:]}", (tmp_path / "web/report.html").as_uri()):
            page.goto(url)
            assert page.locator("table").count() > 0
            assert page.evaluate("document.documentElement.scrollWidth") <= width, url
            assert page.evaluate(OUTSIDE) == [], url
    context.close()


FOLLOW = """() => {
    const within = (one) => (one.shadowRoot ? [one, ...all(one.shadowRoot)] : [one])
    const all = (root) => [...root.querySelectorAll("*")].flatMap(within)
    const links = all(document).filter((one) => /^(a|area|math|mi|button)$/i.test(one.localName))
    links.forEach((one) => one.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true})))
    return links.length
}"""


def test_no_link_of_a_copy_is_followed(page: Any, hostile: Path) -> None:
    """Not where it is opened by itself either, where no policy of a frame holds it."""
    asked: list[Any] = []
    page.on("request", lambda request: asked.append(request))
    with served(hostile) as base:
        for name in ("links", "loads", "svg", "javascript"):
            page.goto(f"{base}raw?url={quote(f'http://bad.example/{name}')}")
            assert page.evaluate(FOLLOW), name
            page.wait_for_timeout(200)
            assert page.url.startswith(f"{base}raw?"), name
    elsewhere = [request for request in asked if not request.url.startswith((base, "data:"))]
    assert {request.failure for request in elsewhere} <= {"csp", "origin"}, elsewhere


def test_nothing_a_page_wrote_runs_or_calls(page: Any, hostile: Path) -> None:
    """Each copy in its frame and opened by itself: no script, no request but to us, no way out of the frame."""
    asked: list[Any] = []
    page.on("request", lambda request: asked.append(request))
    page.on("dialog", lambda dialog: pytest.fail("a dialog"))
    with served(hostile) as base:
        for url, _ in hostile_visits():
            for path in ("copy", "raw") if url.endswith(OPENED) else ("copy",):
                page.goto(f"{base}{path}?url={quote(url)}")
                for frame in page.frames:
                    assert frame.evaluate("window.pwned") is None, url
                assert page.url.startswith(f"{base}{path}?"), url
        page.goto(f"{base}copy?url={quote('http://bad.example/javascript')}")
        frame = page.frame_locator("iframe")
        frame.locator("#go").click()
        frame.locator("#send").click()
        page.wait_for_timeout(200)
        assert page.evaluate("window.pwned") is None and page.url.startswith(base)
        page.goto(f"{base}?q={MARK}")
        assert page.evaluate("window.pwned") is None
    elsewhere = [request for request in asked if not request.url.startswith((base, "data:"))]
    assert {request.failure for request in elsewhere} <= {"csp", "origin"}, elsewhere  # stopped before it was sent


def test_dashboard_moves_and_steers(page: Any, tmp_path: Path) -> None:
    """Beside a crawl of the synthetic web: figures change by themselves; pause, resume, block, stop."""
    into = tmp_path / "web"
    with running_web(simweb.plain(pages=500, hosts=8, seed=5)) as web:
        slow = settings(
            tmp_path,
            web,
            politeness={"host_delay_s": 0.3, "address_delay_s": 0.05},
            crawl={"scope": "web"},
            store={"checkpoint_s": 1.0},
        )
        crawling = begin(into, slow, *web.seeds[:1])
        try:
            wait_for(into / "state" / SOCKET)
            with served(into) as base:
                _watch_and_steer(page, base, crawling)
        finally:
            crawling.terminate()
            crawling.wait(20)


def _watch_and_steer(page: Any, base: str, crawling: "subprocess.Popen[bytes]") -> None:
    page.goto(f"{base}crawl#token={TOKEN}")
    page.wait_for_url("**/crawl/web")  # the fragment is gone from the address
    pages = "Number(document.querySelector('[data-figure=pages]').textContent.replace(',', ''))"
    until(page, f"{pages} > 10")
    before = page.evaluate(pages)
    until(page, f"{pages} > {before}")
    page.wait_for_selector(".plot path.line")
    assert page.locator("#slowest-rows a").count() > 0
    page.get_by_role("button", name="Pause").click()
    until(page, "document.getElementById('state').textContent == 'paused'")
    assert "paused" in page.locator("#said").inner_text()
    page.get_by_role("button", name="Resume").click()
    until(page, "document.getElementById('state').textContent == 'running'")
    page.fill("#urls", "not a url")
    page.get_by_role("button", name="Add seeds").click()
    until(page, "document.getElementById('said').textContent.includes('is not a URL')")
    page.locator("#slowest-rows a").last.click()
    page.wait_for_url("**/host/*")
    host = page.locator("h1 bdi").inner_text()
    page.get_by_role("button", name="Block").click()
    page.wait_for_selector("h1 .killed")
    page.get_by_role("link", name="web").click()
    page.wait_for_url("**/crawl/web")
    until(page, f"document.getElementById('blocked').textContent.includes('{host}')")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Stop").click()
    crawling.wait(20)
    until(page, "document.getElementById('state').textContent == 'stopped'")
    until(page, "document.getElementById('all-orders').hidden")
    assert page.get_by_role("button", name="Pause").count() == page.get_by_role("button", name="Stop").count() == 0
    assert "last checkpoint" in page.locator("#told").inner_text()
