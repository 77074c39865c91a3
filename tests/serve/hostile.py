"""Pages that were written to do harm to who looks at their copy."""

from search.archives import Answer, html

CALL = "http://127.0.0.1:9/called"  # nobody listens; a request that is begun shows in the browser's events
SCRIPT = f"<script>top.pwned=parent.pwned=window.pwned=1;new Image().src='{CALL}';fetch('{CALL}')</script>"
BREAKOUT = f"\"'></title></textarea></style>--></script>{SCRIPT}"
RIGHT_TO_LEFT = "\u202egpj.exe\u2066\u200b\u0000\u0007"
MARK = "harmful"

LINKS = {
    "both": f"<svg width=90 height=20><a xlink:href='{CALL}' href='{CALL}'><text y=15>{MARK}</text></a></svg>",
    "other order": f"<svg width=90 height=20><a href='{CALL}' xlink:href='{CALL}'><text y=15>{MARK}</text></a></svg>",
    "hidden": f"<svg width=90 height=20><a href='#' xlink:href='{CALL}'><text y=15>{MARK}</text></a></svg>",
    "hidden in another": f"<svg width=90 height=20><a xlink:href='#' href='{CALL}'><text y=15>{MARK}</text></a></svg>",
    "twice": f"<a href='{CALL}' href='#' HREF='{CALL}'>{MARK}</a>",
    "by animation": f"<svg width=90 height=20><a><animate attributeName=href values='{CALL}' dur=1s fill=freeze />"
    f"<set attributeName='xlink:href' to='{CALL}'/><text y=15>{MARK}</text></a></svg>",
    "in a shadow": f"<div><template shadowrootmode=open><a href='{CALL}'>{MARK}</a></template></div>",
    "without script": f"<noscript><a href='{CALL}'>{MARK}</a></noscript>",
    "told": f"<a href='#' ping='{CALL}' target=_top>{MARK}</a>",
    "in formulas": f"<math href='{CALL}'><mi xlink:href='{CALL}' href='{CALL}'>{MARK}</mi></math>",
    "in a map": f"<map name=m><area shape=default href='{CALL}'></map><img usemap='#m' width=9 height=9>",
    "outside of pictures": f"<b href='{CALL}' xlink:href='{CALL}'><a xlink:href='{CALL}'>{MARK}</a></b>",
    "spaced": f"<base href='{CALL}'><a href=' {CALL}'>{MARK}</a><a href=''>{MARK}</a><a href=x>{MARK}</a>",
}
LOADS = "".join(
    [
        f"<base href='{CALL}/'><meta http-equiv=refresh content='0;url={CALL}'><meta http-equiv=link content=x>",
        *(f"<link rel='{rel}' href='{CALL}' as=image imagesrcset='{CALL} 1x'>" for rel in (
            "stylesheet", "preload", "prefetch", "dns-prefetch", "preconnect", "icon", "manifest", "modulepreload")),
        f"<style>@import url({CALL});@font-face{{font-family:x;src:url({CALL})}}"
        f"body{{font-family:x;background:image-set('{CALL}' 1x)}}</style>",
        f"<div style='background:url({CALL});list-style:url({CALL});cursor:url({CALL}),auto'>x</div>",
        f"<body background='{CALL}'><table background='{CALL}'><tr><td background='{CALL}'>x</table>",
        f"<img src='{CALL}' srcset='{CALL} 1x' lowsrc='{CALL}' longdesc='{CALL}'><image src='{CALL}'>",
        f"<picture><source srcset='{CALL}'><img></picture><input type=image src='{CALL}'>",
        f"<video src='{CALL}' poster='{CALL}' autoplay></video><audio src='{CALL}' autoplay></audio>",
        f"<video autoplay><source src='{CALL}'><track default src='{CALL}'></video>",
        f"<object data='{CALL}' codebase='{CALL}'></object><embed src='{CALL}'><applet code=x archive='{CALL}'>",
        f"</applet><portal src='{CALL}'></portal><fencedframe src='{CALL}'></fencedframe>",
        f"<iframe src='{CALL}'></iframe>",
        *(f"<svg><{name} {one}='{CALL}#x' {two}='{CALL}#y' width=9 height=9 /></svg>"
            for name in ("use", "image", "script", "feImage", "linearGradient", "textPath", "mpath")
            for one, two in (("href", "xlink:href"), ("xlink:href", "href"))),
        f"<svg fill='url({CALL}#x)' filter='url({CALL}#x)'><rect width=9 height=9 mask='url({CALL}#x)'/></svg>",
        f"<form action='{CALL}'><button id=send formaction='{CALL}'>send</button></form>{MARK}",
    ]
)  # fmt: skip

ATTEMPTS = {
    "script": f"<h1>{MARK}</h1>{SCRIPT}",
    "handlers": f'<img src=x onerror="top.pwned=1"><body onload="top.pwned=1"><svg onload=\'top.pwned=1\'>{MARK}',
    "frames": f"<iframe srcdoc=\"<script>top.pwned=1</script>\"></iframe><iframe src='{CALL}'></iframe>"
    f"<object data='{CALL}'></object><embed src='{CALL}'>{MARK}",
    "refresh": f"<meta http-equiv=refresh content='0;url={CALL}'><base href='{CALL}'>{MARK}",
    "javascript": f"<a id=go href='javascript:top.pwned=1' target=_top>{MARK}</a>"
    f"<form action='{CALL}' method=post><button id=send>send</button></form>",
    "style": f"<link rel=stylesheet href='{CALL}'><style>@import '{CALL}';body{{background:url({CALL})}}</style>{MARK}",
    "svg": f"<svg><script>top.pwned=1</script><a xlink:href='javascript:top.pwned=1'>{MARK}</a>"
    f"<use href='{CALL}'/><foreignObject><iframe src='{CALL}'></iframe></foreignObject></svg>",
    "mutation": f"<noscript><p title='</noscript>{SCRIPT}'></noscript><math><mtext><table><mglyph><style><!--</style>"
    f"<img title='--&gt;{SCRIPT}'>{MARK}",
    "templates": f"{{{{ 7*7 }}}} {{% raw %}} {MARK} <template>{SCRIPT}</template>",
    "nested": "<object><embed src=x><iframe></iframe><object><script>1</script></object></object>" * 20 + MARK,
    "deep": "<div>" * 20_000 + MARK,
    "loads": LOADS,
    "links": "".join(LINKS.values()),
}


def hostile_visits() -> list[tuple[str, Answer]]:
    """An archive's visits; every page holds the word `MARK`."""
    visits = [(f"http://bad.example/{name}", html(name, body)) for name, body in ATTEMPTS.items()]
    visits += [
        ("http://bad.example/title", html(BREAKOUT, f"{MARK} {BREAKOUT}", {CALL: BREAKOUT})),
        ("http://bad.example/long", html("W" * (1 << 20), f"{MARK} " + "x" * (1 << 20))),
        ("http://bad.example/bidi", html(RIGHT_TO_LEFT, f"{MARK} {RIGHT_TO_LEFT}")),
        ("http://bad.example/%22%3E%3Cscript%3E1%3C/script%3E", html("url", MARK)),
        ("http://bad.example/svg-file", Answer(f"<svg xmlns='http://www.w3.org/2000/svg'>{SCRIPT}</svg>",
            headers={"Content-Type": "image/svg+xml"})),
        ("http://bad.example/text", Answer(f"{MARK}\n{SCRIPT}", headers={"Content-Type": "text/plain"})),
        ("http://bad.example/xml", Answer(
            f"<html xmlns='http://www.w3.org/1999/xhtml'>{SCRIPT}<p>{MARK}</p></html>",
            headers={"Content-Type": "application/xml"})),
        ("http://bad.example/xhtml", Answer(
            f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{SCRIPT}<p>{MARK}</p></body></html>",
            headers={"Content-Type": "application/xhtml+xml"})),
        ("http://bad.example/data", Answer(b"\x00\x01PK" + SCRIPT.encode(), headers={"Content-Type": SCRIPT})),
        ("http://bad.example/pdf", Answer(b"%PDF-1.4 /JavaScript", headers={"Content-Type": "application/pdf"})),
        ("http://bad.example/broken", Answer(
            f"<title>\xff\xfe\x80</title>{MARK} \xed\xa0\x80".encode("latin-1"),
            headers={"Content-Type": "text/html; charset=utf-8"})),
        ("http://bad.example/charset", Answer(
            f"+ADw-script+AD4-top.pwned=1+ADw-/script+AD4- {MARK}",
            headers={"Content-Type": "text/html; charset=utf-7"})),
        ("http://bad.example/headers", Answer(f"{MARK}", headers={
            "Content-Type": "text/html", "Set-Cookie": "a=b", "Refresh": f"0;url={CALL}",
            "Link": f"<{CALL}>; rel=preload", "Content-Security-Policy": "default-src *", "Location": CALL})),
        ("http://bad.example/gone", Answer(f"gone {SCRIPT}", 404)),
        ("http://bad.example/empty", Answer("")),
    ]  # fmt: skip
    return visits
