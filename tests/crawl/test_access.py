"""Sites behind doors: what opens them is sent to their origin, to no other, and is written nowhere."""

import gzip
import ssl
from base64 import b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from crawl.guarded import proxy, site
from crawl.runs import FAST, archived, settings
from crawl.runs import crawl_here as crawl
from crawl.runs import fyke_here as fyke
from fyke.core.clock import SystemClock
from fyke.core.config import DnsSection, build, load, render
from fyke.core.errors import ConfigurationError
from fyke.core.outcomes import Outcome
from fyke.core.site import SiteSection
from fyke.core.urls import canonical, split
from fyke.fetcher.access import HIDDEN, Sites
from fyke.fetcher.names import Resolver

PASSWORD, TOKEN, COOKIE = "correct-horse-battery", "tok-3nN0x8s9", "c00kie-v4lue-77"
BASIC = b64encode(f"me:{PASSWORD}".encode()).decode()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", PASSWORD)
    monkeypatch.setenv("TOKEN", TOKEN)


def asked(folder: Path, *sites: dict[str, object], **sections: dict[str, object]) -> Path:
    """Settings with tables of sites."""
    path = settings(folder, **{"dns": {"private": ["127.0.0.1", "127.0.0.2"]}, **sections})  # type: ignore[arg-type]
    path.write_text(path.read_text() + _tables(sites))
    return path


def _tables(sites: Sequence[dict[str, object]]) -> str:
    _, mark, text = render(build({"site": list(sites)}, "test")).partition("\n[[site]]")
    return mark + text


def everything_written(folder: Path) -> Iterable[tuple[Path, bytes]]:
    """All bytes of all files, and what is packed in them."""
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            yield path, data
            if path.name.endswith(".gz"):
                yield path, gzip.decompress(data)
            if path.suffix == ".parquet":
                yield path, repr(pq.read_table(path).to_pylist()).encode()


def holds_no(folder: Path, *secrets: str) -> None:
    """None of `secrets` is written, as it is, in Base64 or escaped for a URL."""
    spelled = {form for secret in secrets for form in (secret, quote(secret), b64encode(secret.encode()).decode())}
    files = 0
    for path, data in everything_written(folder):
        files += 1
        for form in spelled:
            assert form.encode() not in data, (path, form)
    assert files > 8


def cookies(folder: Path, *lines: str) -> str:
    path = folder / "cookies.txt"
    path.write_text("# Netscape HTTP Cookie File\n\n" + "".join(f"{line}\n" for line in lines))
    return str(path)


def test_a_login_stays_with_its_origin(tmp_path: Path) -> None:
    """Other ports, hosts and schemes get nothing, be it by link or by redirect; nor does the archive."""
    with (
        site(lambda fields: fields.get("authorization") == f"Basic {BASIC}") as guarded,
        site() as neighbour,
        site(host="127.0.0.2") as stranger,
    ):
        guarded.away, neighbour.away = neighbour.url, f"{stranger.url}a"
        config = asked(tmp_path, {"match": guarded.url, "user": "me", "password": "env:PASSWORD"})
        run = crawl(tmp_path / "there", config, guarded.url, "--scope", "web")
        assert run.status == 0, run.errors
        assert guarded.sent("authorization") == {f"Basic {BASIC}"}
        assert len(neighbour.asked) > 2 and not neighbour.sent("authorization")
        assert len(stranger.asked) > 1 and not stranger.sent("authorization")
        assert {f"{guarded.url}", f"{guarded.url}a"} <= {*archived(tmp_path / "there")}
    holds_no(tmp_path, PASSWORD, BASIC)
    (record,) = [data for path, data in everything_written(tmp_path / "there" / "warc") if b"GET /a HTTP" in data]
    assert f"Authorization: {HIDDEN}\r\n".encode() in record
    assert load(tmp_path / "there" / "fyke.toml").site[0].password == "env:PASSWORD"


def test_cookies_and_tokens_and_fields(tmp_path: Path) -> None:
    jar = cookies(
        tmp_path,
        f"127.0.0.1\tFALSE\t/\tFALSE\t0\tlogin\t{COOKIE}",
        f"#HttpOnly_127.0.0.1\tFALSE\t/a\tFALSE\t4000000000\tdeep\t{COOKIE}2",
        f"127.0.0.1\tFALSE\t/\tTRUE\t0\tsecure\t{COOKIE}3",
        f"127.0.0.1\tFALSE\t/\tFALSE\t1000\told\t{COOKIE}4",
        f"other.example\tTRUE\t/\tFALSE\t0\tother\t{COOKIE}5",
    )
    with site(lambda fields: "login=" in fields.get("cookie", "")) as walled, site() as neighbour:
        walled.away = neighbour.url
        config = asked(
            tmp_path,
            {"match": "127.0.0.1", "headers": {"Accept-Language": "fy"}, "user_agent_suffix": "(by night)"},
            {"match": walled.url, "cookies": jar, "headers": {"X-Token": "env:TOKEN"}},
        )
        assert crawl(tmp_path / "there", config, walled.url, neighbour.url).status == 0
        by_path = {path: fields.get("cookie") for path, fields in walled.asked}
        assert by_path["/"] == f"login={COOKIE}" and by_path["/a"] == f"deep={COOKIE}2; login={COOKIE}"
        assert walled.sent("x-token") == {TOKEN}
        assert not neighbour.sent("cookie") and not neighbour.sent("x-token")
        assert walled.sent("accept-language") == neighbour.sent("accept-language") == {"fy"}
        assert all(name.endswith(" (by night)") for name in walled.sent("user-agent") | neighbour.sent("user-agent"))
    holds_no(tmp_path / "there", COOKIE, TOKEN)


def test_a_client_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    mine = authority.issue_cert("me@example.org")
    mine.private_key_and_cert_chain_pem.write_to_path(tmp_path / "me.pem")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    with site(tls=tls) as guarded:
        fetch = {"ca_file": str(tmp_path / "ca.pem")}
        config = asked(tmp_path, {"match": guarded.url, "certificate": str(tmp_path / "me.pem")}, fetch=fetch)
        assert crawl(tmp_path / "there", config, guarded.url).status == 0
        assert f"{guarded.url}a" in archived(tmp_path / "there")
        config = settings(tmp_path, fetch=fetch, politeness={"host_failures": 1})
        assert crawl(tmp_path / "else", config, guarded.url).status == 5
    key = (tmp_path / "me.pem").read_text().splitlines()[1]
    holds_no(tmp_path / "there", key)


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_a_proxy(tmp_path: Path, kind: str) -> None:
    """It is asked for names that nobody else knows, and gets none of what is the site's."""
    with site() as guarded, proxy(kind) as between:
        url = guarded.url.replace("127.0.0.1", "intranet.test")
        config = asked(
            tmp_path,
            {"match": "*", "proxy": f"{kind}://127.0.0.1:{between.port}"},
            {"match": url, "bearer": "env:TOKEN"},
        )
        assert crawl(tmp_path / "there", config, url).status == 0
        assert sorted(archived(tmp_path / "there")) == [url, f"{url}a", f"{url}away"]
        assert {*between.asked} == {url.split("/")[2]}
        assert guarded.sent("authorization") == {f"Bearer {TOKEN}"}
    holds_no(tmp_path / "there", TOKEN)


def test_a_proxy_with_a_login(tmp_path: Path) -> None:
    """Its tunnel carries TLS, which it cannot look into; its own words are not taken for the site's."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("intranet.test").configure_cert(tls)
    with site(tls=tls) as guarded, site() as plain, proxy("http", f"me:{PASSWORD}") as between:
        url = guarded.url.replace("127.0.0.1", "intranet.test")
        open_url = plain.url.replace("127.0.0.1", "intranet.test")
        login = {"proxy_user": "me", "proxy_password": "env:PASSWORD"}
        table = {"match": "*.test", "proxy": f"http://127.0.0.1:{between.port}"}
        with_login = [{**table, **login}, {"match": url, "bearer": "env:TOKEN"}]
        fetch = {"ca_file": str(tmp_path / "ca.pem")}
        run = crawl(tmp_path / "there", asked(tmp_path, *with_login, fetch=fetch), url, open_url)
        assert run.status == 0, run.errors
        assert {url, open_url} <= {*archived(tmp_path / "there")}
        assert guarded.sent("authorization") == {f"Bearer {TOKEN}"} and not plain.sent("authorization")
        assert not guarded.sent("proxy-authorization")
        assert not any(TOKEN.encode() in head for head in between.heads)
        data = b"".join(data for _, data in everything_written(tmp_path / "there" / "warc"))
        assert b"X-Proxy" not in data
        run = crawl(tmp_path / "else", asked(tmp_path, table, politeness={"host_failures": 1}), open_url)
        assert run.status == 5
        assert "proxy asks for a user name" in fyke("why", str(tmp_path / "else"), open_url).stdout
    holds_no(tmp_path, PASSWORD, TOKEN)


def test_a_host_with_its_own_delay(tmp_path: Path) -> None:
    """A crawl of a few pages ends at once, though usual delays would take hours."""
    with site() as own:
        config = asked(
            tmp_path,
            {"match": "127.0.0.1", "delay_s": 0},
            politeness={"host_delay_s": 3600.0, "address_delay_s": 3600.0, "delay_factor": 10.0},
        )
        assert crawl(tmp_path / "there", config, own.url).status == 0
        assert len(archived(tmp_path / "there")) == 3


# -- the law, without a network --------------------------------------------------------------------------

ORIGINS = [
    f"{scheme}://{host}{port}"
    for scheme in ("http", "https")
    for host in ("a.example", "b.a.example", "xa.example", "a.example.evil")
    for port in ("", ":80", ":443", ":8080")
]
PATHS = ["/", "/app", "/app/", "/app/x?y", "/apple", "/x/app/", "//app/", "/?http://a.example/app/"]


@given(
    st.sampled_from(ORIGINS), st.sampled_from(["/", "/app", "/app/"]), st.sampled_from(ORIGINS), st.sampled_from(PATHS)
)
def test_a_secret_is_for_one_origin_and_what_is_below_a_path(origin: str, path: str, other: str, target: str) -> None:
    sites = Sites([SiteSection(match=f"{origin}{path}", bearer="env:TOKEN")], {"TOKEN": TOKEN})
    url = canonical(f"{other}{target}")
    assert url is not None
    mine, theirs = split(canonical(f"{origin}/") or ""), split(url)
    below = theirs.target.partition("?")[0]
    within = below == path or below.startswith(path if path.endswith("/") else f"{path}/")
    sent = dict(sites.access(url).headers).get("Authorization")
    assert (sent == f"Bearer {TOKEN}") == (mine.origin == theirs.origin and within)
    assert TOKEN not in repr(sites.access(url)) and TOKEN not in repr(sites)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"match": "a.example", "bearer": "env:TOKEN"}, ["one origin", "https://example.org/"]),
        ({"match": "https://a.example/", "bearer": "hunter2"}, ["env:NAME"]),
        ({"match": "https://a.example/", "user": "me", "password": "hunter2"}, ["env:NAME"]),
        ({"match": "https://a.example/", "headers": {"X-Api-Key": "hunter2"}}, ["env:NAME"]),
        ({"match": "https://a.example/", "headers": {"Cookie": "hunter2"}}, ["env:NAME"]),
        ({"match": "https://a.example/", "headers": {"Host": "x"}}, ["Host: Fyke sends it"]),
        ({"match": "https://a.example/", "headers": {"X-A": "x\r\nX-B: y"}}, ["one line"]),
        ({"match": "https://a.example/", "headers": {"X A": "x"}}, ["header field"]),
        ({"match": "https://a.example/", "proxy": "http://p:1"}, ["host"]),
        ({"match": "*", "proxy": "http://me:hunter2@p:1"}, ["proxy_user"]),
        ({"match": "*", "proxy": "ftp://p:1"}, ["socks5://"]),
        ({"match": "https://a.example/", "bearer": "env:NOTHING"}, ["NOTHING", "set it"]),
        ({"match": "https://a.example/", "bearer": "file:/none"}, ["/none", "No such file"]),
        ({"match": "https://a.example/", "cookies": "/none"}, ["/none", "No such file"]),
        ({"match": "https://a.example/", "certificate": "/none"}, ["/none", "No such file"]),
        ({"match": "https://a.example/", "colour": "red"}, ["unknown key", "bearer"]),
        ({"bearer": "env:TOKEN"}, ["match"]),
        ({"match": "https://a.example/", "password": "env:TOKEN"}, ["no user"]),
        ({"match": "https://a.example/", "headers": {"X-Empty": ""}}, ["Empty is empty"]),
        ({"match": "*", "proxy": "http://p:99999"}, ["host:port"]),
        *(({"match": "*", "proxy": f"http://{host}:1"}, ["http://host:port"]) for host in (
            "a b", "ü" * 300, "a<b", "\u00ad"
        )),
        ({"match": "http://me:hunter2@a.example/"}, ["password"]),
        *(({"match": none}, ["not a host"]) for none in (
            "", " ", "*.", "**", "a.example:8080", " a.example", "127.0.0.*", "a.example/x", "me@a.example", "a b"
        )),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, table: dict[str, object], words: list[str]) -> None:
    """One line that never shows what could be a secret."""
    with pytest.raises(ConfigurationError) as raised:
        Sites(build({"site": [table]}, "fyke.toml").site, {"TOKEN": TOKEN})
    assert all(word in str(raised.value) for word in words), raised.value
    assert "\n" not in str(raised.value) and "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("match", "host"),
    [
        ("Bücher.Example", "xn--bcher-kva.example"),
        ("*.Example.ORG", "www.example.org"),
        ("[0:0::1]", "[::1]"),
        ("127.1", "127.0.0.1"),
    ],
)
def test_a_host_is_meant_however_it_is_written(match: str, host: str) -> None:
    assert SiteSection(match=match).has_host(host)


@pytest.mark.parametrize(
    ("proxy", "meant"),
    [
        ("http://pröxy.test:3128", "http://xn--prxy-6qa.test:3128"),
        ("socks5://PROXY:1080/", "socks5://proxy:1080"),
        ("https://[::1]:443", "https://[::1]:443"),
        ("http://localhost:80", "http://localhost:80"),
    ],
)
def test_a_proxy_is_meant_however_it_is_written(proxy: str, meant: str) -> None:
    assert SiteSection(match="*", proxy=proxy).proxy == meant


def test_a_cookies_file_is_read_as_browsers_write_it(tmp_path: Path) -> None:
    """With the mark of its encoding or without; what is none is refused, and no address is below another."""
    jar = tmp_path / "jar.txt"

    def sent(line: str, url: str) -> str | None:
        jar.write_text(line, encoding="utf-8-sig")
        sites = Sites([SiteSection(match=url, cookies=str(jar))])
        return dict(sites.access(url).headers).get("Cookie")

    assert sent("a.example\tFALSE\t/\tFALSE\t0\tname\tvalue", "http://a.example/") == "name=value"
    assert sent("0.0.1\tTRUE\t/\tFALSE\t0\tname\tvalue", "http://127.0.0.1/") is None
    for expires, value in (("²", "x"), ("--5", "x"), ("9" * 5000, "x"), ("0", "\x01"), ("0", "\x7f")):
        with pytest.raises(ConfigurationError, match="line 1 of"):
            sent(f"a.example\tFALSE\t/\tFALSE\t{expires}\tname\t{value}", "http://a.example/")


async def test_a_proxy_is_asked_for_no_name_of_its_own_network() -> None:
    """But where a person named it: links of strangers lead there too."""

    def resolver(**dns: list[str]) -> Resolver:
        return Resolver(DnsSection(**dns), SystemClock(), lambda host: host == "wiki", by_proxy=lambda _: True)

    for name in ("intranet", "printer.local", "metadata.google.internal", "nas.lan", "x.home.arpa"):
        assert (await resolver().resolve(name)).outcome is Outcome.ADDRESS_REFUSED
        assert (await resolver(private=[name]).resolve(name)).ok
    for name in ("wiki", "www.example.org"):
        assert (await resolver().resolve(name)).ok


def test_mistakes_are_told_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('[[site]]\nmatch = "https://a.example/"\nbearer = "env:NOTHING"\n')
    run = crawl(tmp_path / "there", tmp_path / "x.toml", "https://a.example/")
    assert run.status == 2 and run.errors.count("\n") == 1 and not (tmp_path / "there").exists()
    jar = cookies(tmp_path, "not a cookie")
    (tmp_path / "x.toml").write_text(f'[[site]]\nmatch = "https://a.example/"\ncookies = "{jar}"\n')
    run = crawl(tmp_path / "there", tmp_path / "x.toml", "https://a.example/")
    assert run.status == 2 and run.errors.count("\n") == 1 and "line 3" in run.errors


def test_a_proxy_of_the_environment_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://me:{PASSWORD}@127.0.0.1:9/")
    with site() as open_site:
        run = crawl(tmp_path / "there", settings(tmp_path, politeness=FAST), open_site.url)
    assert run.status == 0 and "http_proxy is set, but Fyke ignores it" in run.errors and PASSWORD not in run.errors
