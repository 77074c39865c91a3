"""Names of domains, found by their keys, are those that the list of suffixes gives."""

from hypothesis import example, given
from hypothesis import strategies as st

from fyke.core.batches import domain_names, url_batch
from fyke.core.urls import canonical, locate, pay_level_domain, split

LABELS = st.sampled_from(["a", "www", "example", "github", "co", "com", "uk", "jp", "kawasaki", "io", "xn--p1ai", "1"])
NAMES = st.lists(LABELS, min_size=1, max_size=5).map(".".join)
PORTS = st.sampled_from(["", ":81"])


@given(st.lists(st.tuples(NAMES, st.sampled_from(["", "."]), PORTS).map("".join), max_size=20))
@example(["[::1]:8080", "127.0.0.1", "co.uk:81", "a.b.example.co.uk.", "localhost"])
def test_a_domain_is_named_as_the_list_of_suffixes_has_it(authorities: list[str]) -> None:
    urls = [url for authority in authorities if (url := canonical(f"http://{authority}/")) is not None]
    assert domain_names(url_batch([locate(url) for url in urls])) == [pay_level_domain(split(url).host) for url in urls]
