"""Keys as the `surt` package 0.3.1 makes them; the answers were recorded from it."""

import time

import pytest

from fyke.archive.surt import surt

RECORDED = {
    "ftp://a..b.org/x.html?jsessionid=0123456789abcdef0123456789abcdef": "org,b,a)/x.html",
    "ftp://a.b.c.co.uk:8080/a%23b?cfid=1&cftoken=2&z=1": "uk,co,c,b,a:8080)/a%23b?z=1",
    "ftp://example.org:8080/%2541?a=b=c&a=a": "org,example:8080)/a?a=a&a=b=c",
    "ftp://www2.example.org/x.html?é": "org,example)/x.html?%c3%a9",
    "ftp://www2.example.org/~u/?cfid=1&cftoken=2&z=1": "org,example)/~u?z=1",
    "ftp://wwwx.de/a/%2E%2E/b?x=%20y": "de,wwwx)/b?x=%20y",
    "gopher://192.0.2.7/a%20b?&&": "7,2,0,192)/a%20b?&&",
    "gopher://[2001:db8::1]/a%23b?%41=%42": "2001:db8::1)/a%23b?a=b",
    "gopher://example.org/a%23b?%41=%42": "org,example)/a%23b?a=b",
    "gopher://example.org:8080/a%20b?q=a+b%2Bc": "org,example:8080)/a%20b?q=a+b+c",
    "gopher://localhost/a%3Fb?a=b=c&a=a": "localhost)/a?b?a=a&a=b=c",
    "gopher://www.example.org/(s(abcdefghijklmnopqrstuvwx))/page.aspx": "org,example)/page.aspx",
    "gopher://wwwx.de/a:b@c?x=%FF": "de,wwwx)/a:b@c?x=%ff",
    "gopher://xn--bcher-kva.example:8080/a%3Fb": "example,xn--bcher-kva:8080)/a?b",
    "http://192.0.2.7:8080/A/B?a=b=c&a=a": "7,2,0,192:8080)/a/b?a=a&a=b=c",
    "http://[2001:db8::1]:8080/A/B?&&": "2001:db8::1:8080)/a/b?&&",
    "http://a..b.org/a(b)/?A=B&c": "org,b,a)/a(b)?a=b&c",
    "http://a.b.c.co.uk/a/b/?é": "uk,co,c,b,a)/a/b?%c3%a9",
    "http://localhost:8080/%2541?%41=%42": "localhost:8080)/a?a=b",
    "http://www2.example.org/~u/?%41=%42": "org,example)/~u?a=b",
    "http://www2.example.org:8080/%FF?b=2&a=1": "org,example:8080)/%ff?a=1&b=2",
    "http://wwwx.de/a/%2E%2E/b?x=%FF": "de,wwwx)/b?x=%ff",
    "http://xn--bcher-kva.example/a/b/": "example,xn--bcher-kva)/a/b",
    "http://xn--bcher-kva.example:8080/?q=a+b%2Bc": "example,xn--bcher-kva:8080)/?q=a+b+c",
    "http://xn--bcher-kva.example:8080/a/b/?q=a+b%2Bc": "example,xn--bcher-kva:8080)/a/b?q=a+b+c",
    "https://192.0.2.7/a%2Fb?a=1&": "7,2,0,192)/a/b?&a=1",
    "https://192.0.2.7/a|b^c`{}?x=%20y": "7,2,0,192)/a|b^c`{}?x=%20y",
    "https://[2001:db8::1]/a|b^c`{}?": "2001:db8::1)/a|b^c`{}",
    "https://[2001:db8::1]:8080/a(b)/?cfid=1&cftoken=2&z=1": "2001:db8::1:8080)/a(b)?z=1",
    "https://a..b.org/a%20b?x=%FF": "org,b,a)/a%20b?x=%ff",
    "https://a.b.c.co.uk/a%23b?": "uk,co,c,b,a)/a%23b",
    "https://a.b.c.co.uk/a%23b?a=b=c&a=a": "uk,co,c,b,a)/a%23b?a=a&a=b=c",
    "https://example.org./a%20b?z": "org,example)/a%20b?z",
    "https://example.org:8080/a(b)/?&&": "org,example:8080)/a(b)?&&",
    "https://localhost/a/%2E%2E/b": "localhost)/b",
    "https://www1.www.x.y/%2541?jsessionid=0123456789abcdef0123456789abcdef": "y,x,www)/a",
    "https://www1.www.x.y/~u/?x=%20y": "y,x,www)/~u?x=%20y",
    "https://xn--bcher-kva.example/%2541?é": "example,xn--bcher-kva)/a?%c3%a9",
    "https://xn--bcher-kva.example//x//y/?url=http://x/?y": "example,xn--bcher-kva)/x/y?url=http://x/?y",
    "https://xn--bcher-kva.example:8080/a%20b?a=1&": "example,xn--bcher-kva:8080)/a%20b?&a=1",
}


@pytest.mark.parametrize("url", RECORDED)
def test_keys_are_those_of_the_archives(url: str) -> None:
    assert surt(url) == RECORDED[url]


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/" + "a" * 8000 + "%",
        "http://a.example/" + "/a" * 4000 + "(",
        "http://a.example/%" + "25" * 4000,
        "http://a.example/?" + "cfid=" * 1600,
        "http://a.example/" + "(abcdefghijklmnopqrstuvwx)/" * 290,
    ],
)
def test_no_url_takes_long(url: str) -> None:
    before = time.process_time()
    surt(url)
    assert time.process_time() - before < 0.5


def test_a_port_stays_on_the_short_way_too() -> None:
    assert surt("http://www.example.org:8080/A/b/") == "org,example:8080)/a/b"
