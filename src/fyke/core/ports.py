"""Ports of other protocols, to which no link may lead.

A mail server takes each line for a command and answers it: a link to its port would have the crawler speak to it for
the author of the link. The numbers are those of the Fetch standard, "port blocking".
"""

OTHERS_PORTS = frozenset(
    {
        1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
        110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530,
        531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190,
        5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
    }
)  # fmt: skip

# Ports at which Gopher is not spoken: its request is a line that the author of a link chose, and web servers, caches
# and databases take it for a request or a command.
LINE_PORTS = frozenset(
    {
        80, 81, 443, 591, 1433, 1521, 2375, 2379, 3000, 3128, 3306, 5000, 5432, 5672, 5984, 6379, 7001, 8000, 8008,
        8080, 8081, 8086, 8088, 8161, 8443, 8500, 8888, 9000, 9042, 9090, 9092, 9200, 11211, 15672, 27017,
    }
)  # fmt: skip
