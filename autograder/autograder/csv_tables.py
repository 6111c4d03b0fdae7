"""Reading and writing CSV files: errors name file and line, cells are guarded against formula injection."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from autograder.user_error import UserError

# Where a spreadsheet would see a formula begin: before = + - @, tab, return or a full-width form of them, at
# the start of the text or after a separator (; tab |; text with commas is quoted). Spaces and quotes between
# the separator and the sign do not help.
FORMULA = re.compile(r"""(?:^|(?<=[;\t|]))(?=[\s"']*[=+@\t\r\uff1d\uff0b\uff0d\uff20-])""")


def read_rows(
    file: str | Path, *choices: tuple[str, ...], wanted: str = ""
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, {column name in lower case: stripped text}) for each line.

    choices: groups of columns; the file must have all columns of at least one group. wanted: describes the
    groups in the error message, where there are several.
    Raises UserError where no group is complete, and for a file that cannot be read.
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
    """Rows as CSV text. end: the line terminator. quoted: put every field in quotes."""
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(text, lineterminator=end, quoting=quoting).writerows(rows)
    return text.getvalue()


def guard(text: str) -> str:
    """A cell's text that no spreadsheet runs as a formula, whichever separator it is set to.

    Puts an apostrophe before every place that FORMULA finds, also before spaces, quotes and apostrophes that
    precede the sign, so that two different texts never become equal.
    """
    return FORMULA.sub("'", " ".join(text.split("\n")))
