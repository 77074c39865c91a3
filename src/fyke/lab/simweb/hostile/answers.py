"""Answers that are missing, false or slow, or that lead nowhere."""

import gzip
import struct
import zlib

from fyke.lab.simweb.hostile.script import PAGE, Behaviour, Many, Numbered, Pause, Reset, Script, head, to, whole

_CHUNKED = head("Transfer-Encoding: chunked")
_ZEROS = bytes(1 << 20)


def _bomb(megabytes: int, layers: int = 1) -> bytes:
    """Pack zeros to a thousandth of their size per layer. One megabyte is packed once and then repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    megabyte = packer.compress(_ZEROS) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(megabytes):
        checksum = zlib.crc32(_ZEROS, checksum)
    trailer = struct.pack("<II", checksum, (megabytes << 20) & 0xFFFFFFFF)
    packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + megabyte * megabytes + b"\x03\0" + trailer
    for _ in range(layers - 1):
        packed = gzip.compress(packed, 9)
    return packed


def _coded(body: bytes, coding: str) -> Script:
    return whole(body, f"Content-Encoding: {coding}")


_RAW: dict[str, Script] = {
    "closes-at-once": (),
    "resets-at-once": (Reset(),),
    "silent": (Pause(),),
    "answers-with-a-new-line": (b"\r\n",),
    "answers-with-new-lines": (Many(b"\r\n", 100_000),),
    "zeros": (bytes(100_000),),
    "zeros-without-end": (Many(_ZEROS),),
    "ssh-server": (b"SSH-2.0-OpenSSH_9.6\r\n", Pause()),
    "smtp-server": (b"220 mail ESMTP\r\n",),
    "tls-alert": (b"\x15\x03\x01\x00\x02\x02\x28",),
    "http-09": (b"<html>no head at all",),
    "http-2-unasked": (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18), Pause()),
    "icy": (b"ICY 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n" + PAGE,),
    "status-missing": (b"HTTP/1.1 \r\n\r\n" + PAGE,),
    "status-0": whole(PAGE, status="0 Zero"),
    "status-99": whole(PAGE, status="99 Low"),
    "status-1000": whole(PAGE, status="1000 High"),
    "status-minus": whole(PAGE, status="-200 OK"),
    "status-words": whole(PAGE, status="two hundred"),
    "status-line-long": (b"HTTP/1.1 200 " + b"O" * (4 << 20) + b"\r\n\r\n" + PAGE,),
    "continue-without-end": (Many(b"HTTP/1.1 100 Continue\r\n\r\n"),),
    "early-hints-flood": (Many(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 50_000), *whole(PAGE)),
    "switches-protocols": (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x05hello", Pause()),
    "reset-in-head": (b"HTTP/1.1 200 OK\r\nContent-Ty", Reset()),
    "close-in-head": (b"HTTP/1.1 200 OK\r\nContent-Ty",),
    "close-in-fold": (b"HTTP/1.1 200 OK\r\nX: y\r\n ",),
    "reset-in-body": (head("Content-Length: 100000") + PAGE, Reset()),
    "close-in-body": (head("Content-Length: 100000") + PAGE,),
    "head-without-end": (b"HTTP/1.1 200 OK\r\n", Many(b"X-Field: " + b"y" * 8000 + b"\r\n")),
    "head-of-one-line": (b"HTTP/1.1 200 OK\r\nX: ", Many(b"y" * 65_536)),
    "fields-by-the-thousand": (b"HTTP/1.1 200 OK\r\n", Numbered(b"X-%N%: y\r\n", 60_000), b"\r\n" + PAGE),
    "field-without-colon": (b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n" + PAGE,),
    "field-without-name": (b"HTTP/1.1 200 OK\r\n: value\r\n\r\n" + PAGE,),
    "field-with-zero": (b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n" + PAGE,),
    "fields-folded": (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\n\r\n" + PAGE,),
    "lines-end-in-cr": (b"HTTP/1.1 200 OK\rContent-Type: text/html\r\r" + PAGE,),
    "cookies-by-the-thousand": (head(*(f"Set-Cookie: c{n}={n}" for n in range(2000))) + PAGE,),
    "link-of-no-relation": whole(PAGE, 'Link: </a>; rel=""'),
    "length-twice": whole(PAGE, f"Content-Length: {len(PAGE)}"),
    "lengths-that-differ": whole(PAGE, "Content-Length: 7"),
    "length-negative": (head("Content-Length: -1") + PAGE,),
    "length-in-hex": (head("Content-Length: 0x20") + PAGE,),
    "length-of-an-exabyte": (head("Content-Length: 1000000000000000000") + PAGE,),
    "length-too-short": (head("Content-Length: 5") + PAGE,),
    "length-never-kept": (head("Content-Length: 100000") + PAGE, Pause()),
    "length-and-chunks": (head("Content-Length: 5", "Transfer-Encoding: chunked") + b"2\r\nhi\r\n0\r\n\r\n",),
    "chunk-of-an-exabyte": (_CHUNKED + b"ffffffffffffffff\r\nhi",),
    "chunk-negative": (_CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",),
    "chunk-of-no-number": (_CHUNKED + b"many\r\nhello\r\n0\r\n\r\n",),
    "chunk-with-long-extension": (_CHUNKED + b"2;x=" + b"y" * (4 << 20) + b"\r\nhi\r\n0\r\n\r\n",),
    "chunks-of-one-byte": (_CHUNKED, Many(b"1\r\nx\r\n", 500_000), b"0\r\n\r\n"),
    "chunks-without-last": (_CHUNKED + b"5\r\nhello\r\n",),
    "chunks-without-end": (_CHUNKED, Many(b"10000\r\n" + bytes(65_536) + b"\r\n")),
    "trailers-without-end": (_CHUNKED + b"2\r\nhi\r\n0\r\n", Many(b"X: " + b"y" * 1000 + b"\r\n")),
    "coding-of-no-name": _coded(PAGE, "sdch"),
    "coding-of-transfer": (head("Transfer-Encoding: gzip, chunked") + b"2\r\nhi\r\n0\r\n\r\n",),
    "gzip-that-is-none": _coded(PAGE, "gzip"),
    "gzip-cut": _coded(gzip.compress(PAGE * 100)[:-20], "gzip"),
    "gzip-and-garbage": _coded(gzip.compress(PAGE) + b"garbage" * 100, "gzip"),
    "gzip-thirty-times": _coded(gzip.compress(PAGE), ", ".join(["gzip"] * 30)),
    "deflate-that-is-none": _coded(PAGE, "deflate"),
    "deflate-raw": _coded(zlib.compress(PAGE)[2:-4], "deflate"),
    "brotli-that-is-none": _coded(b"\xff" * 1000, "br"),
    "zstd-of-a-huge-window": _coded(b"\x28\xb5\x2f\xfd\x00\xf8" + b"\xff" * 1000, "zstd"),
    "type-of-many-slashes": whole(PAGE, kind="a/" * 5000),
    "type-of-control-signs": whole(PAGE, kind="text/\x1b[31mhtml"),
    "type-missing": whole(PAGE, kind=""),
    "no-content-with-content": whole(PAGE, status="204 No Content"),
    "partial-unasked": whole(PAGE, "Content-Range: bytes 5-9/1000", status="206 Partial Content"),
    "not-modified-unasked": whole(b"", status="304 Not Modified"),
    "wants-a-password": whole(PAGE, 'WWW-Authenticate: Basic realm="x"', status="401 Unauthorized"),
    "wants-a-proxy-password": whole(PAGE, 'Proxy-Authenticate: Basic realm="x"', status="407 Proxy"),
    "teapot": whole(PAGE, status="418 Teapot"),
    "censored": whole(PAGE, status="451 Unavailable For Legal Reasons"),
    "fails": whole(PAGE, status="500 Internal Server Error"),
    "fails-oddly": whole(PAGE, status="999 Denied"),
    "body-without-end": (head(), Many(b"<p>word " * 8000)),
    "two-answers": (*whole(PAGE), *whole(b"another")),
}
_BOMBS: dict[str, Script] = {
    "gzip-of-a-gigabyte": _coded(_bomb(1024), "gzip"),
    "gzip-of-gzip-of-a-gigabyte": _coded(_bomb(1024, 2), "gzip, gzip"),
    "gzip-within-all-limits": _coded(_bomb(127), "gzip"),
    "gzip-of-a-gigabyte-as-a-file": whole(_bomb(1024), kind="application/gzip"),
}
_SLOW: dict[str, Script] = {
    "slow-head": (Many(b"H", 1), Many(b"TTP/1.1 200 OK\r\nX: y\r\n", 1, 1.0), Many(b"y", 300, 1.0)),
    "slow-body": (head(), Many(b"x" * 70, 300, 1.0)),
    "slower-than-allowed": (head(), Many(b"x", 300, 1.0)),
    "stops-after-head": (head("Content-Length: 100"), Pause()),
    "stops-in-body": (head("Content-Length: 100"), b"<html>", Pause()),
    "just-fast-enough": (head(), Many(b"x" * 100, 300, 0.5)),
    "brings-much-and-waits": (head(), Many(b"words " * 1000, 15), Many(b"x" * 70, 300, 1.0)),
    "never-closes": (head("Content-Length: 4") + b"done", Pause()),
}
_ASKS: dict[str, Script] = {
    "throttles": whole(b"", status="429 Too Many Requests"),
    "throttles-for-an-hour": whole(b"", "Retry-After: 3600", status="429 Too Many Requests"),
    "rests-for-an-hour": whole(b"", "Retry-After: 3600", status="503 Service Unavailable"),
    "rests-for-a-day": whole(b"", "Retry-After: 86400", status="503 Service Unavailable"),
    "rests-for-a-century": whole(b"", "Retry-After: 3155760000", status="503 Service Unavailable"),
    "rests-until-2099": whole(b"", "Retry-After: Thu, 01 Jan 2099 00:00:00 GMT", status="503 Service Unavailable"),
    "rests-since-1970": whole(b"", "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", status="503 Service Unavailable"),
    "rests-negative": whole(b"", "Retry-After: -5", status="503 Service Unavailable"),
    "rests-in-words": whole(b"", "Retry-After: soon", status="503 Service Unavailable"),
    "rests-for-ninety-nines": whole(b"", "Retry-After: " + "9" * 90, status="503 Service Unavailable"),
}
_LEADS: dict[str, Script] = {
    "leads-to-itself": to("/"),
    "leads-on-without-end": to("/%NEXT%"),
    "leads-on-by-query": to("/?n=%NEXT%"),
    "leads-on-by-page": whole(b"<meta http-equiv=refresh content='0;url=/%NEXT%'>"),
    "leads-on-by-refresh": whole(PAGE, "Refresh: 0;url=/%NEXT%"),
    "leads-nowhere": whole(b"", status="302 Found"),
    "leads-to-nothing": to(""),
    "leads-to-a-file": to("file:///etc/passwd"),
    "leads-to-a-script": to("javascript:alert(1)"),
    "leads-to-data": to("data:text/html,hi"),
    "leads-to-metadata": to("http://169.254.169.254/latest/meta-data/"),
    "leads-to-this-machine": to("http://127.0.0.1:22/"),
    "leads-to-localhost": to("http://localhost:6379/"),
    "leads-to-a-private-net": to("http://192.168.0.1/"),
    "leads-to-a-number": to("http://2130706433/"),
    "leads-to-octal": to("http://0177.0.0.1/"),
    "leads-to-mapped": to("http://[::ffff:127.0.0.1]/"),
    "leads-to-a-password": to("http://user:secret@start.hostile/"),
    "leads-to-a-long-url": to("/" + "a" * (1 << 20)),
    "leads-to-a-bad-url": to("http://[::1"),
    "leads-to-a-bad-port": to("http://start.hostile:99999/"),
    "leads-to-control-signs": to("/\x1b[2J\x07"),
    "leads-three-ways": whole(b"", "Location: /a", "Location: /b", "Location: /c", status="301 Moved"),
    "leads-with-300": to("/%NEXT%", "300 Multiple Choices"),
    "leads-with-399": to("/%NEXT%", "399 Odd"),
    "leads-to-a-proxy": to("http://127.0.0.1:3128/", "305 Use Proxy"),
    "leads-with-306": to("/%NEXT%", "306 Unused"),
    "leads-to-new-hosts": to("http://h%NEXT%.%HOST%:%PORT%/%NEXT%"),
    "leads-elsewhere-for-rules": to("/%NEXT%"),
}

BEHAVIOURS = [
    Behaviour(name, script) for group in (_RAW, _BOMBS, _SLOW, _ASKS, _LEADS) for name, script in group.items()
]
