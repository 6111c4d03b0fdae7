"""CSV files: read line by line, with what is wrong named; and written."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from autograder.user_error import UserError

# Where a spreadsheet would see a formula begin, whichever sign its settings have between cells (commas
# stand in quotes here): in front of = + - @ tab or return, or wide forms. Spaces and quotes may be between.
FORMULA = re.compile(r"""(?:^|(?<=[;\t|]))(?=[\s"']*[=+@\t\r\uff1d\uff0b\uff0d\uff20-])""")


def read_rows(
    file: str | Path, *choices: tuple[str, ...], wanted: str = ""
) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, {column in small letters: text without white space around it}) of each line.

    choices: of these groups of columns one must be there. wanted: says so in words, where there are several.
    Raises UserError where none is, and for a file that cannot be read.
    """
    try:
        with open(file, newline="", encoding="utf-8-sig") as lines:
            rows = csv.DictReader(lines)
            rows.fieldnames = [(name or "").strip().lower() for name in rows.fieldnames or ()]
            if not any(set(columns) <= set(rows.fieldnames) for columns in choices):
                wanted = wanted or f"that names the columns {' and '.join(choices[0])}"
                raise UserError(f"{file} needs a first line {wanted}")
            for row in rows:
                yield rows.line_num, {key: (text or "").strip() for key, text in row.items() if key}
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise UserError(f"cannot read {file}: {problem}") from None


def csv_text(rows: Iterable[Iterable[object]], *, end: str = "\n", quoted: bool = False) -> str:
    """Rows as CSV. end: of a line. quoted: every field in quotes."""
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(text, lineterminator=end, quoting=quoting).writerows(rows)
    return text.getvalue()


def guard(text: str) -> str:
    """A cell that no spreadsheet takes for a formula, nor a part of it where it takes other separators.

    An apostrophe stands in front of a = + - @ tab or return that begins the text or follows a separator, and
    in front of spaces, quotes and apostrophes before one, so that two texts never become one.
    """
    return FORMULA.sub("'", " ".join(text.split("\n")))
