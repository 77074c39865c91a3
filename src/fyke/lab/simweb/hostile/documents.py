"""Documents that are large, deep, or traps."""

import gzip
import random

from fyke.lab.simweb.hostile.script import PAGE, Behaviour, Many, Numbered, Script, Step, head, packed, to, whole

_MB = 1 << 20
_LOC = b"<url><loc>http://%HOST%:%PORT%/%N%</loc></url>"
_URLSET = b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def _html(*body: Step) -> Script:
    return (head() + b"<!doctype html>", *body)


def _xml(*body: Step, kind: str = "application/xml") -> Script:
    return (head(kind=kind), *body)


_ENTITIES = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 12))
_PACKED_XML = packed(b"<url><loc>/a</loc></url>" * (1 << 15), 64, _URLSET)
_PACKED_DEPTH = packed(b"<a>" * (1 << 18), 80)
_NOISE = random.Random(1).randbytes(_MB)
_MANY = b" ".join(b"x%d" % number for number in range(240))  # attributes
_FONTS = b"".join(b"<font size=%d><p>" % number for number in range(60_000))  # a megabyte
_PAGES: dict[str, Script] = {
    "tags-of-64-mb": _html(Many(b"<b>" * 1000, 21_000)),
    "tags-a-million-deep": _html(Many(b"<div>" * 1000, 1000)),
    "tags-that-never-close": _html(Many(b"<p <" * 1000, 1000)),
    "formatting-misnested": _html(Many(b"<b><i><a></b></i>" * 100, 1000)),
    "tables-in-tables": _html(Many(b"<table><tr><td>" * 1000, 200)),
    "links-a-million": _html(Numbered(b"<a href=/%N%>x</a>", 1_000_000)),
    "links-a-million-of-hosts": _html(Numbered(b"<a href=http://h%N%.link-bomb.hostile/>x</a>", 300_000)),
    "links-all-the-same": _html(Many(b"<a href=/a>x</a>" * 100, 30_000)),
    "links-of-a-megabyte": _html(b"<a href=/", Many(b"a" * _MB, 8), b">x</a>"),
    "links-with-dots": _html(Many(b"<a href=" + b"../" * 5000 + b"x>y</a>", 200)),
    "attributes-by-the-thousand": _html(b"<a ", Numbered(b"a%N%=b ", 500_000), b">"),
    "attributes-on-every-tag": _html(b"<template>", Many(b"<p %b>" % _MANY, 7_000)),
    "attributes-of-the-body": _html(b"<template>", Numbered(b"<body x%N% y%N% z%N%>%NEXT%", 20_000)),
    "attributes-behind-quotes": _html(b"<template>%NEXT%<p ", Numbered(b'x%N%="<" ', 40_000), b">"),
    "attributes-made-again": _html(b"<template><p><b %b><i %b>%%NEXT%%" % (_MANY, _MANY), Many(b"<p>x" * 100, 1_100)),
    "attribute-of-32-mb": _html(b"<p title='", Many(b"x" * _MB, 32), b"'>"),
    "title-of-16-mb": _html(b"<title>", Many(b"x" * _MB, 16), b"</title>"),
    "comment-that-never-ends": _html(b"<!--", Many(b"-- >" * 1000, 4000)),
    "script-that-never-ends": _html(b"<script>", Many(b"<!--<script>" * 1000, 1000)),
    "entities-of-html": _html(Many(b"&amp;&#x41;&notit;" * 1000, 500)),
    "srcset-of-commas": _html(b"<img srcset='", Many(b"," * 1000, 4000), b"'>"),
    "style-of-open-urls": _html(b"<style>", Many(b"a{b:url( " * 1000, 300)),
    "base-elsewhere": whole(b"<base href='http://169.254.169.254/'><a href=latest>x</a>"),
    "base-of-no-kind": whole(b"<base href='data:,'><a href=x>y</a>"),
    "charset-of-no-name": whole(PAGE, kind="text/html; charset=klingon"),
    "charset-utf-7": whole(b"+ADw-script+AD4-" + PAGE, kind="text/html; charset=utf-7"),
    "charset-utf-16-that-is-none": whole(PAGE, kind="text/html; charset=utf-16"),
    "charsets-a-thousand": whole(b"<meta charset=x>" * 1000 + PAGE),
    "bytes-of-no-charset": whole(bytes(range(256)) * 4000),
    "text-as-html": whole(b"<" * (4 << 20)),
    "image-as-html": whole(b"\x89PNG\r\n\x1a\n" + bytes(_MB)),
    "pdf-that-is-none": whole(b"%PDF-1.7\n" + b"<<" * 100_000, kind="application/pdf"),
    "title-of-control-signs": whole(b"<title>\x1b]0;owned\x07\x1b[2J</title>"),
    "article-in-preformatted-text": whole(b"<pre><article>Words of an article</article></pre>"),
    "frames-of-itself": whole(b"<iframe src=/%NEXT%></iframe>" * 100),
}
_XML: dict[str, Script] = {
    "xml-billion-laughs": _xml(b"<!DOCTYPE a [<!ENTITY e0 'ha'>" + _ENTITIES + b"]><a>&e11;</a>"),
    "xml-external-entity": _xml(
        b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><urlset><loc>&x;</loc></urlset>"
    ),
    "xml-gzip-of-50-mb": whole(_PACKED_XML, kind="application/gzip"),
    "xml-gzip-of-depth": whole(_PACKED_DEPTH, "Content-Encoding: gzip", kind="application/xml"),
    "xml-deep": _xml(Many(b"<a>" * 1000, 5000)),
    "xml-attributes": _xml(b"<a ", Numbered(b"a%N%='b' ", 500_000), b"/>"),
    "xml-doctype-comments": _xml(b"<!DOCTYPE a [", Many(b"<!---->" * 1000, 1000), b"]><a/>"),
    "xml-text-of-32-mb": _xml(b"<rss><channel><title>", Many(b"x" * _MB, 32), b"</title></channel></rss>"),
    "sitemap-of-a-million": _xml(_URLSET, Numbered(_LOC, 1_000_000), b"</urlset>"),
    "sitemap-of-itself": whole(b"<sitemapindex><sitemap><loc>/%NEXT%</loc></sitemap></sitemapindex>", kind="text/xml"),
    "sitemap-of-sitemaps": _xml(
        b"<sitemapindex>", Numbered(b"<sitemap><loc>/%N%</loc></sitemap>", 50_000), b"</sitemapindex>"
    ),
    "feed-of-a-million": _xml(
        b"<rss><channel>", Numbered(b"<item><link>/%N%</link></item>", 500_000), kind="application/rss+xml"
    ),
    "json-feed-deep": (head(kind="application/feed+json"), Many(b"[" * 1000, 5000)),
    "json-feed-wide": (
        head(kind="application/feed+json"),
        b'{"version":"https://jsonfeed.org/version/1","items":[',
        Numbered(b'{"url":"/%N%"},', 300_000),
        b"{}]}",
    ),
    "style-sheet-of-imports": (head(kind="text/css"), Numbered(b"@import url(/%N%);", 200_000)),
    "menu-without-end": (head(kind="text/plain"), Many(b"http://%HOST%/ ", 500_000)),
}
_WIDE = "utf-16-le"
_HEAVY: dict[str, Script] = {  # large, but within the limits: the sum over many such servers counts
    "body-of-30-mb": (head(kind="text/plain"), Many(b"so many words " * 7 + b"\n\n", 314_573)),
    "page-of-8-mb": _html(Numbered(b"<p>Words, and <a href=/%N%>a link</a> among them, " + b"words " * 60, 20_000)),
    "page-just-below-large": _html(Numbered(b"<p>Words and <a href=/%N%>a link</a> among these words.</p>", 7_800)),
    "fonts-just-below-large": _html(Numbered(b"<font size=%N%><p>%NEXT%", 20_000)),
    "divs-just-below-large": _html(Many(b"<div>%NEXT%" * 100, 800)),
    "elements-just-below-large": _xml(_URLSET, Many(b"<a>%NEXT%" * 100, 1200)),
    "page-of-60-mb-in-utf-16": (
        head(kind="text/html; charset=utf-16") + b"\xff\xfe", Many("<p>words</p> <!-- -->".encode(_WIDE) * 100, 15_000),
    ),
    "sitemap-of-60-mb-in-utf-16": (
        head(kind="application/xml") + b"\xff\xfe" + _URLSET.decode().encode(_WIDE),
        Many("<url><loc>http://a.hostile/</loc></url>".encode(_WIDE) * 100, 8_000),
    ),
    "sitemap-of-50-mb": _xml(
        _URLSET, Numbered(b"<url><loc>http://%HOST%:%PORT%/%N%</loc></url>", 49_999), Many(b" " * 1000, 46_000)
    ),
    "sitemap-of-depth": whole(
        packed(b"<a>" * (1 << 18), 80, _URLSET), "Content-Encoding: gzip", kind="application/xml"
    ),
    "json-feed-of-objects": (
        head(kind="application/feed+json"),
        b'{"version":"https://jsonfeed.org/version/1","items":[', Many(b'{"":{}},' * 1000, 1000), b"{}]}",
    ),
    "feed-of-60-mb": _xml(
        b"<rss><channel>", Numbered(b"<item><link>/%N%</link>" + b"<a>b</a>" * 20 + b"</item>", 300_000),
        kind="application/rss+xml",
    ),
    "list-broken-of-empty-tags": _xml(_URLSET, b"<", Many(b"<a/>" * 1000, 15_000)),
    "text-of-60-mb-and-a-smile": (
        head(kind="text/plain"), "\N{SMILING FACE WITH SMILING EYES}".encode(), Many(b"words and more " * 100, 40_000),
    ),
    "style-sheet-of-60-mb": (head(kind="text/css"), Many(b"a{b:c}" * 1000, 10_000)),
    "menu-of-60-mb": (head(kind="text/plain"), Many(b"1menu\t/\thost\t70\r\n" * 100, 30_000)),
    "chunks-of-two-bytes": (head("Transfer-Encoding: chunked"), Many(b"2\r\nxy\r\n", 9_000_000), b"0\r\n\r\n"),
    "chunks-of-a-letter-and-long-extensions": (
        head("Transfer-Encoding: chunked"), Many(b"1;" + b"x" * 14_000 + b"\r\na\r\n"),
    ),
    "gzip-of-4-mb": whole(
        gzip.compress(b"<p><a href=/a>Some words</a> and more of them " * 85_000, 9),
        "Content-Encoding: gzip",
    ),
    "gzip-of-many-members": (head("Content-Encoding: gzip"), Many(gzip.compress(b""), 3_000_000)),
    "gzip-of-60-mb-of-fonts": (head("Content-Encoding: gzip"), Many(gzip.compress(b"<template>" + _FONTS, 9), 55)),
    "gzip-of-64-mb-to-128": (
        head("Content-Encoding: gzip"), Many(gzip.compress(_NOISE, 1), 60), Many(gzip.compress(bytes(_MB), 9), 60),
    ),
    "head-of-300-kb": (head(*(f"X-{n}: {'y' * 8000}" for n in range(34))) + PAGE,),
    "leads-on-by-long-urls": to("/" + "a" * 1800 + "%NEXT%"),
}  # fmt: skip
_TRAPS: dict[str, Script] = {
    "trap-of-numbers": whole(b"<title>Page</title><a href=/%NEXT%>next</a>"),
    "trap-of-queries": whole(b"<title>Page</title><a href='/?day=%NEXT%'>tomorrow</a>"),
    "trap-of-folders": whole(b"<title>Page</title><a href='a/%NEXT%'>deeper</a>"),
    "trap-of-dots": whole(b"<title>Page</title><a href='x/./y/'>deeper</a>"),
    "trap-of-sessions": whole(b"<title>Page</title><a href='/;sid=%NEXT%'>home</a>"),
    "trap-of-hosts": whole(b"<title>Page</title><a href='http://h%NEXT%.%HOST%:%PORT%/%NEXT%'>a host</a>"),
}

BEHAVIOURS = [Behaviour(name, script) for group in (_PAGES, _XML, _HEAVY, _TRAPS) for name, script in group.items()]
