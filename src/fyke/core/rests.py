"""A rest is short or long: frontier, fetcher and readers draw one line between them."""

SOON_S = 60.0  # a visit that may be made within this time is handed out; a host that rests for longer sleeps


def soon_visits(rest_s: float, most: int) -> int:
    """Return how many visits a host that rests for `rest_s` after each makes within `SOON_S`: at most `most`, and 0
    for a host that sleeps."""
    if rest_s > SOON_S:
        return 0
    return most if rest_s * most <= SOON_S else int(SOON_S / rest_s)
