"""The tree of files for benchmarks: every link is to a file, and all files are reached."""

from collections import Counter

from selectolax.lexbor import LexborHTMLParser

from fyke.lab.simweb import tree_path, tree_url, write_tree


def test_links_lead_to_files(tmp_path):
    seeds = write_tree(tmp_path, pages=300, hosts=3, port=8000)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.html")}
    assert len(files) == 300
    assert seeds[0] == "http://t0.d0.sim:8000/"
    known = {tree_url(page, 3, 8000) for page in range(300)}
    met, queue, linked = {seeds[0]}, [seeds[0]], Counter()
    while queue:
        name, _, path = queue.pop().removeprefix("http://").partition("/")
        file = tmp_path / name.partition(":")[0] / (path or "index.html")
        links = [node.attributes["href"] for node in LexborHTMLParser(files[file]).css("a")]
        assert len(links) == 60 and set(links) <= known
        linked.update(links)
        queue += set(links) - met
        met.update(links)
    assert met == known
    assert linked.most_common(1)[0][1] > 10 * linked[tree_url(299, 3, 8000)]
    assert 19_000 < sum(map(len, files.values())) / 300 < 23_000
    again = tmp_path / "again"
    write_tree(again, pages=300, hosts=3, port=8000)
    assert (again / "t1.d1.sim" / tree_path(4, 3)[1:]).read_bytes() == files[
        tmp_path / "t1.d1.sim" / tree_path(4, 3)[1:]
    ]
