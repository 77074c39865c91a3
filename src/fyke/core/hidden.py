"""Characters that text of strangers may hide behind: parts of regular expressions, to stand between brackets.

Used by modules that show or keep this text. Invariant: neither list has the characters that join letters or keep them
apart (U+200C, U+200D), which are parts of words, or tabs and line ends.
"""

CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
HIDDEN = (  # they are invisible, or turn the direction of the text that follows
    r"\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\uffff"
    r"\U000e0000-\U000e0fff"  # copies of letters
)
