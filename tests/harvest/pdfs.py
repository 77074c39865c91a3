"""PDF files, written by hand: lines of text, a title, links to click on."""

from collections.abc import Sequence


def pdf(lines: Sequence[str], title: str = "", links: Sequence[str] = (), pages: int = 1) -> bytes:
    """A PDF with `lines` on each of so many `pages`; `links` are on the first."""
    shown = "".join(f"({_escaped(line)}) Tj 0 -14 Td\n" for line in lines)
    stream = f"BT /F1 11 Tf 50 780 Td\n{shown}ET".encode("latin-1", "replace")
    kids = " ".join(f"{5 + number} 0 R" for number in range(pages))
    first_link = 5 + pages
    annotations = " ".join(f"{first_link + number} 0 R" for number in range(len(links)))
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F1 3 0 R >> >>"
    )
    info = first_link + len(links)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        page + f" /Annots [{annotations}] >>".encode(),
        *[page + b" >>"] * (pages - 1),
        *[
            f"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI ({_escaped(link)}) >> >>".encode()
            for link in links
        ],
        f"<< /Title ({_escaped(title)}) >>".encode("latin-1"),
    ]
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R /Info {info} 0 R >>\n"
    return out + f"{end}startxref\n{len(out)}\n%%EOF".encode()


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
