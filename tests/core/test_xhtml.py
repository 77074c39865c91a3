"""XHTML says to an HTML parser what it says to one of XML, whatever its prefixes, CDATA sections and own entities."""

from random import Random
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import pytest

from fyke.core.markup import tree_of
from fyke.core.outcomes import Outcome
from fyke.core.visits import SAME_TEXT, Earlier, Exchange, visit_to
from fyke.core.xhtml import GROWTH_BYTES, written_out
from fyke.export.prose import plain
from fyke.harvest import Parser
from fyke.harvest.same_text import compare
from fyke.search.main_text import main_text

XHTML = "http://www.w3.org/1999/xhtml"
SAID = ["plain words", "a < b & c", "<p>no tag</p>", "]] > x", "&amp; twice", "reed warbler", "x&lt;y", "<!-- no -->"]
OWN = {"who": "the heron", "what": "a marsh & more", "copy": "©", "long": "reed " * 40}


class Writer:
    """Writes documents in one of the ways in which XML may say the same."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.prefix = self.dice.choice(["", "h:", "html:", "x-1:"])
        self.names = self.dice.sample(sorted(OWN), self.dice.randrange(len(OWN) + 1))

    def text(self) -> str:
        said = self.dice.choice(SAID)
        way = self.dice.randrange(4)
        if way == 0 and self.names:
            return f"{escape(said)} &{self.dice.choice(self.names)}; "
        if way == 1:
            return f"<![CDATA[{said.replace(']]>', '')}]]>{self.dice.choice(['', '<![CDATA[]]>', '<!-- c -->'])}"
        return escape(said)

    def element(self, tag: str, content: str, attributes: str = "") -> str:
        if not content and self.dice.random() < 0.7:
            return f"<{self.prefix}{tag}{attributes}/>"
        return f"<{self.prefix}{tag}{attributes}>{content}</{self.prefix}{tag}>"

    def block(self, depth: int) -> str:
        if depth == 0:
            href = f" href={quoteattr(f'/to/{self.dice.randrange(99)}')}"
            return self.dice.choice([self.text(), self.element("b", self.text()), self.element("a", "to", href)])
        tag = self.dice.choice(["div", "section", "p" if depth == 1 else "div", "div"])
        return self.element(tag, " ".join(self.block(depth - 1) for _ in range(self.dice.randrange(4))))

    def document(self) -> str:
        sign = self.dice.choice(["&#38;#38;", "&#38;#x26;"])
        subset = "".join(f'<!ENTITY {name} "{OWN[name].replace("&", sign)}">\n' for name in self.names)
        doctype = f"<!DOCTYPE {self.prefix}html [<!-- ]> -->{subset}]>" if self.names else "<!DOCTYPE html>"
        start = self.dice.choice(["", '<?xml version="1.0" encoding="utf-8"?>\n'])
        script = self.element("script", "//<![CDATA[\nif (a < b && c) { '<p>no' }\n//]]>")
        head = self.element(
            "head", self.element("title", self.text().replace("<!-- c -->", "")) + self.dice.choice(["", script])
        )
        body = self.element("body", "".join(self.block(3) for _ in range(4)))
        name = f"xmlns:{self.prefix[:-1]}" if self.prefix else "xmlns"
        return f'{start}{doctype}<{self.prefix}html {name}="{XHTML}">{head}{body}</{self.prefix}html>'


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize("part", range(4))
def test_the_html_parser_reads_what_a_parser_of_xml_does(part: int) -> None:
    for seed in range(100 * part, 100 * part + 100):
        xhtml = Writer(seed).document()
        there = ElementTree.fromstring(xhtml)
        body, title = there.find(f"{{{XHTML}}}body"), there.find(f".//{{{XHTML}}}title")
        assert body is not None and title is not None
        found = tree_of(written_out(xhtml.encode()))
        assert found.body is not None
        assert words(found.body.text()) == words("".join(body.itertext())), xhtml
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/xhtml+xml; charset=utf-8\r\n\r\n"
        exchange = Exchange(visit_to("http://example.com/"), Outcome.OK, 0.0, 0.0, status=200, head=head)
        for shared in (True, False):
            page = Parser(shared=shared).parse(exchange, xhtml.encode())
            assert words(page.title) == words("".join(title.itertext()))
            links = {node.attrib["href"] for node in body.iter(f"{{{XHTML}}}a")}
            assert set(page.links.pages) == links, xhtml
        said = "".join(words("".join(body.itertext())))
        assert all(word in said for text in (main_text(page).text, plain(page)) for word in words(text))


BOMBS = {
    "laughs": "<!DOCTYPE html [" + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 30)) + "]>&l29;",
    "long": '<!DOCTYPE html [<!ENTITY a "' + "a" * 200 + '">]>' + "&a;" * 300_000,
    "many": "<!DOCTYPE html [" + "".join(f'<!ENTITY a{n} "b">' for n in range(60_000)) + "]>" + "&a1;" * 9,
    "outside": '<!DOCTYPE html [<!ENTITY a SYSTEM "file:///etc/passwd"><!ENTITY % b "c">%b;]>&a;',
    "sections": "<![CDATA[<&]]>" * 80_000,
    "signs": f"<![CDATA[{'<&' * 500_000}]]>",
    "open": "<![CDATA[" * 100_000,
    "scripts": "<script>" * 120_000,
    "comments": "<!--" * 250_000,
    "prefixes": "".join(f'<a{n}:p xmlns:a{n}="{XHTML}">' for n in range(20_000)),
    "subset": "<!DOCTYPE html [" + "<!--" * 200_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_is_written_out_is_bounded(bomb: str) -> None:
    """At most twice as long and some, but for end tags; nothing is loaded, and no entity stands in another."""
    content = BOMBS[bomb].encode()
    found = written_out(content)
    assert len(found) <= 2 * len(content) + GROWTH_BYTES and b"root:" not in found


@pytest.mark.parametrize(
    "same", ["<p>a</p>", "<p>a &copy; b</p>", "<!DOCTYPE html><x:p>a</x:p>", "<script>x = '<![CDATA[<p>]]>'</script>"]
)
def test_what_needs_no_change_stays(same: str) -> None:
    assert written_out(same.encode()) == same.encode()


@pytest.mark.parametrize("said", ["<![CDATA[{}]]>", "<h:p>{}</h:p>", "&who;"])
def test_another_text_is_a_change(said: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/xhtml+xml; charset=utf-8\r\n\r\n"
    old, new = (
        f'<!DOCTYPE html [<!ENTITY who "{who}">]><html xmlns="{XHTML}" xmlns:h="{XHTML}">{said.format(who)}</html>'
        for who in ("heron", "warbler")
    )
    for copy, changes in ((old, True), (f"{new} ", False)):
        visit = visit_to("http://example.com/")
        visit.earlier = Earlier(place=(0, 0, 1), fingerprint=1, head=head)
        exchange = Exchange(visit, Outcome.OK, 0.0, 0.0, status=200, head=head)
        found = copy.encode()
        compare(Parser().parse(exchange, new.encode()), lambda *_, found=found: (head, found), 1 << 20)
        assert (exchange.detail != SAME_TEXT) is changes
