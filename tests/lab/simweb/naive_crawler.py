"""A crawler of a hundred lines that knows nothing of simweb's map: the check on its truth.

It fetches over real sockets, one request at a time and without waiting, parses robots.txt with
Google's matcher, HTML with lexbor, URLs with ada.
"""

import gzip
import http.client
import re
import socket
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from collections import deque

import ada_url
import brotli
import pytest
from resiliparse.parse.encoding import detect_encoding
from selectolax.lexbor import LexborHTMLParser

RobotsMatcher = pytest.importorskip("jwm.robotstxt.googlebot").RobotsMatcher
ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


def plain_escapes(text):
    """Text with needless escapes undone and the others in capitals."""

    def plain(match):
        letter = chr(int(match[1], 16))
        return letter if UNRESERVED.fullmatch(letter) else match[0].upper()

    return ESCAPE.sub(plain, text)


def canonical(link, base):
    try:
        url = ada_url.URL(link, base=base)
    except ValueError:
        return None
    url.hash = ""
    if url.protocol not in ("http:", "https:") or url.host == "nowhere.sim":
        return None
    return ada_url.URL(plain_escapes(url.href.rstrip("#"))).href


def resolve(dns, name):
    """(code, addresses) of a name by an A query over UDP; code -1 for no answer."""
    host, port = dns.split(":")
    wire = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.15)
        sock.sendto(struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + wire + b"\0\1\0\1", (host, int(port)))
        try:
            packet = sock.recv(4096)
        except TimeoutError:
            return -1, []
    code, answers = packet[3] & 15, struct.unpack_from(">H", packet, 6)[0]
    found, place = [], 12 + len(wire) + 4
    for _ in range(answers):
        while packet[place] and packet[place] < 0xC0:
            place += 1 + packet[place]
        place += 2 if packet[place] else 1
        kind, _, _, size = struct.unpack_from(">HHIH", packet, place)
        if kind == 1:
            found.append(socket.inet_ntoa(packet[place + 10 : place + 14]))
        place += 10 + size
    return code, found


def decode(body, headers):
    declared = re.search(r"charset=([\w-]+)", headers.get("Content-Type", ""))
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return body.decode("utf-16")
    return body.decode(declared[1] if declared else detect_encoding(body, html5_compatible=True), "replace")


def what_came(answer):
    """The body as far as it came, and whether that is all of it."""
    pieces = []
    try:
        while piece := answer.read1():
            pieces.append(piece)
    except (OSError, http.client.HTTPException):
        return b"".join(pieces), False
    answer.close()  # so that its connection may be used again
    return b"".join(pieces), not answer.length


class NaiveCrawler:
    def __init__(self, dns, retries=3, timeout_s=0.3):
        self.dns, self.retries, self.timeout_s = dns, retries, timeout_s
        self.addresses, self.robots, self.connections = {}, {}, {}
        self.archived, self.requested, self.forbidden, self.unreachable = {}, set(), set(), set()
        self.begun = {}  # what came of pages that did not come whole

    def close(self):
        for connection in self.connections.values():
            connection.close()

    def address(self, name):
        if name not in self.addresses:
            code, found = 2, []
            for _ in range(self.retries):
                code, found = resolve(self.dns, name)
                if code != 2:
                    break
            self.addresses[name] = found[0] if found else None
        return self.addresses[name]

    def get(self, url):
        """(status, headers, body), or None when no whole answer came."""
        parts = ada_url.URL(url)
        place = (self.address(parts.hostname), int(parts.port))
        target = parts.pathname + parts.search
        headers = {"Host": parts.host, "User-Agent": "fyke/0", "Accept-Encoding": "gzip, deflate, br"}
        try:
            # One connection kept for each address: hosts that share it share the connection.
            connection = self.connections.setdefault(place, http.client.HTTPConnection(*place, self.timeout_s))
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException):
            connection.close()
            return None
        body, is_whole = what_came(answer)
        if not is_whole:
            self.begun[url] = answer.headers, body
            connection.close()
            return None
        coding = answer.headers.get("Content-Encoding")
        if coding == "br":
            body = brotli.decompress(body)
        elif coding:
            bare = coding == "deflate" and body[:1] != b"\x78"
            body = zlib.decompress(body, -15 if bare else 47)
        return answer.status, answer.headers, body

    def get_in_the_end(self, url):
        for _ in range(self.retries):
            answer = self.get(url)
            if answer is not None and answer[0] not in (429, 503):
                break
        return answer

    def rules(self, origin):
        """The text of robots.txt, or None when all is forbidden; and the sitemaps it names."""
        if origin not in self.robots:
            url, text = origin + "/robots.txt", None
            answer = self.get_in_the_end(url)
            while answer and answer[0] in (301, 302):
                answer = self.get_in_the_end(canonical(answer[1]["Location"], url))
            if answer and answer[0] < 500:
                text = answer[2].decode("utf-8-sig") if answer[0] == 200 else ""
            # Google's matcher does not undo needless escapes in rules, RFC 9309 (2.2.2) does.
            self.robots[origin] = text and plain_escapes(text)
        return self.robots[origin]

    def crawl(self, seed):
        queue, met, greeted = deque([seed]), {seed}, set()
        while queue:
            url = queue.popleft()
            parts = ada_url.URL(url)
            origin = f"{parts.protocol}//{parts.host}"
            if self.address(parts.hostname) is None or self.address(parts.hostname) == "127.254.254.254":
                self.unreachable.add(url)
                continue
            found = [] if origin in greeted else self.sitemap_links(origin)
            greeted.add(origin)
            text = self.rules(origin)
            if text is None or not RobotsMatcher().OneAgentAllowedByRobots(text, "fyke", url):
                self.forbidden.add(url)
            else:
                found += self.visit(url)
            for link in found:
                if link not in met:
                    met.add(link)
                    queue.append(link)

    def visit(self, url):
        self.requested.add(url)
        answer = self.get_in_the_end(url)
        if answer is None:
            return self.links(url, *self.begun[url]) if url in self.begun else []
        status, headers, body = answer
        if status in (301, 302, 303, 307, 308):
            return [canonical(headers["Location"], url)]
        if status != 200:
            return []
        self.archived[url] = (headers, body)
        return self.links(url, headers, body)

    def links(self, url, headers, body):
        media_type = headers.get_content_type()
        if media_type.endswith("+xml"):
            root = ElementTree.fromstring(body)
            texts = [one.text for one in root.iter() if one.tag == "link" and one.text]
            hrefs = [one.get("href") for one in root.iter() if one.get("href")]
            return [canonical(one, url) for one in texts + hrefs]
        if media_type != "text/html" or "nofollow" in headers.get("X-Robots-Tag", ""):
            return []
        tree = LexborHTMLParser(decode(body, headers))
        meta = tree.css_first('meta[name="robots"]')
        if meta is not None and "nofollow" in meta.attributes["content"]:
            return []
        base = tree.css_first("base[href]")
        base = canonical(base.attributes["href"], url) if base is not None else url
        found = []
        for node in tree.css("a[href], area[href], iframe[src], link[rel=next], link[rel=alternate]"):
            attributes = node.attributes
            if "nofollow" in (attributes.get("rel") or ""):
                continue
            found.append(canonical(attributes.get("href") or attributes.get("src") or "", base))
        return [link for link in found if link]

    def sitemap_links(self, origin):
        text = self.rules(origin) or ""
        queue = re.findall(r"(?m)^Sitemap: (\S+)$", text)
        found = []
        while queue:
            url = queue.pop()
            status, headers, body = self.get_in_the_end(url)
            assert status == 200, url
            if headers.get_content_type() == "text/plain":
                found += body.decode().split()
                continue
            body = gzip.decompress(body) if headers.get_content_type() == "application/gzip" else body
            root = ElementTree.fromstring(body)
            texts = [one.text.strip() for one in root.iter() if one.tag.endswith("}loc")]
            if root.tag.endswith("}sitemapindex"):
                queue += texts
            else:
                found += texts
        return [canonical(one, origin) for one in found]
