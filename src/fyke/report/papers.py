"""Numbers that the papers print of their crawls, to be laid beside another.

`fyke.report.comparison` reads them. Mercator: Heydon and Najork, World Wide Web 2(4), 1999, section 6 (a crawl of eight
days). IRLbot: Lee, Leonard, Wang and Loguinov, WWW 2008, sections 7.1 and 7.2, Table 4 (41 days). Invariant: every
number is the paper's own, or named as worked out of two that are.
"""

MERCATOR_REQUESTS = 77_357_381  # HTTP, robots.txt included
MERCATOR_ANSWERS = 75_593_531
MERCATOR_DAYS = 8
MERCATOR_PAGES_S = 112
MERCATOR_MIDDLING = 0.80  # of documents, from 1 KB to 32 KB

MERCATOR_STATUSES = {  # Table 2
    200: 65_790_953, 404: 5_617_491, 302: 2_517_705, 301: 842_875, 403: 322_042, 401: 223_843, 500: 83_744,
    406: 81_091, 400: 65_159,
}  # fmt: skip
MERCATOR_MEDIA_TYPES = {  # Table 3
    "text/html": 41_490_044, "image/gif": 10_729_326, "image/jpeg": 4_846_257, "text/plain": 869_911,
    "application/pdf": 540_656, "audio/x-pn-realaudio": 269_384, "application/zip": 213_089,
    "application/postscript": 159_869,
}  # fmt: skip
MERCATOR_DOCUMENTS = 59_947_946  # of Table 3

IRLBOT_CONNECTIONS = 7_606_109_371
IRLBOT_REPLIES = 7_437_281_300
IRLBOT_OTHER_TYPES = 92e6
IRLBOT_ERRORS = 964e6  # and redirects
IRLBOT_PAGES = 6_380_051_942
IRLBOT_DAYS = 41.27
IRLBOT_PAGES_S = 1_789
IRLBOT_LINKS = 59  # a page
IRLBOT_UNIQUE = 0.11  # of links, after the first billion pages
IRLBOT_UNIQUE_LINKS = 6.5  # a page
IRLBOT_URL_BYTES = 70.6
IRLBOT_HTML_BYTES = 25_200  # a page, unpacked
IRLBOT_PACKED = 0.16  # of pages
IRLBOT_RATIO = 5  # of those
IRLBOT_HOSTS, IRLBOT_DOMAINS = 117_576_295, 33_755_361
IRLBOT_LARGEST = 347_613  # blogspot.com
IRLBOT_PAGES_90, IRLBOT_PAGES_99 = 586, 3_044
