"""A client for the webs of the benches: runs inside one, and tells what it was given, a line of JSON a page."""

import gzip
import html
import io
import json
import re
import sys
from urllib.parse import urldefrag, urljoin

import pycurl

_HREF = re.compile(rb'<a\b[^>]*?\bhref="([^"]*)"', re.IGNORECASE)
_PROTOCOLS = {pycurl.CURL_HTTP_VERSION_1_1: "1.1", pycurl.CURL_HTTP_VERSION_2_0: "2"}


def fetch(pages: int) -> None:
    """Fetch at most `pages`, breadth first, from the URL that is the first argument, trusting the second."""
    seed, ca = sys.argv[1:]
    waiting, met = [seed], {seed}
    curl = pycurl.Curl()
    if ca:
        curl.setopt(pycurl.CAINFO, ca)
    for url in waiting:
        if pages == 0:
            return
        pages -= 1
        page = _page(curl, url)
        print(json.dumps(page))
        for href in page["hrefs"]:
            found = urldefrag(urljoin(url, href)).url
            if "/private/" not in found and found not in met:
                met.add(found)
                waiting.append(found)


def _page(curl: pycurl.Curl, url: str) -> dict:
    body, head = io.BytesIO(), io.BytesIO()
    curl.setopt(pycurl.URL, url)
    curl.setopt(pycurl.WRITEFUNCTION, body.write)
    curl.setopt(pycurl.HEADERFUNCTION, head.write)
    curl.setopt(pycurl.HTTPHEADER, ["Accept-Encoding: gzip"])
    curl.perform()
    coding = "gzip" if b"content-encoding: gzip" in head.getvalue().lower() else ""
    content = gzip.decompress(body.getvalue()) if coding else body.getvalue()
    return {
        "url": url,
        "status": curl.getinfo(pycurl.RESPONSE_CODE),
        "protocol": _PROTOCOLS[curl.getinfo(pycurl.INFO_HTTP_VERSION)],
        "coding": coding,
        "size": len(content),
        "hrefs": [html.unescape(href.decode()) for href in _HREF.findall(content)],
    }
