"""The text of a task as its set has it, from its heading to the end of its cell: whole, and by sentences."""

import re

from corpus_files import SOLUTIONS

VERBS = (
    "Add Answer Apply Bring Choose Compute Copy Correct Count Cut Decide Divide Do Fetch Fill Find Follow "
    "Give Go Guess Halve Hold Interpolate Keep Launch Lay Leave Let Make Mend Mind Multiply Put Read "
    "Reduce Return Run Scan Set Skip Square Start Subtract Sum Take Use Wait Warm Wrap Write "
).split()
"""First words of sentences that ask for something."""
OTHERS = (
    "A About Adam Adding Addresses After All Amdahl An And Arrays As At Attention Barriers Batch Before "
    "Between Biases Blocks Both But Chapter Configurations Counted Each Edges Eight Even Every Everything "
    "Far First Five For Forward Four Giving Going Hardly Here How If In It Its Job Kubernetes Large Last "
    "Launched Layer Length Limits Logits Mean Measurements Memory Mixed Moments More Near Neighbouring "
    "Neighbours Noise Noting Now Numbers Of On Once One Only Otherwise Parameters Powers Rows Running "
    "Scanning Scores Seconds Serving Sides Since So Softmax Some Somebody Starting State Stored Straight "
    "Strides That The Their Then There These They This Those Thread Threads Three Through Tiles To Together "
    "Tokens Triton Two Until Warmth Water Weights What Whatever When Where Which Whole Why With Without You "
    "Your "
).split()
"""First words of sentences that tell, or that may ask behind a comma."""
LEAD = (
    r"(?:So|Then|First|Otherwise|Now|Here|"
    r"(?:Together|If|For|When|Where|In|With|Until|Before|To)\b[^,]*,)\s+"
)
LIMIT = r"\b(?:must|never|only (?:when|if)|at most|at least|may not|no more|need not|shall)\b"
ADVICE = r"\b(?:if you like|suggestion|will be of use|Predict|Copy the lines between the braces)\b|\*\*Guess"


def words(text):
    """A text without its line breaks and the marks of comments."""
    lines = (re.sub(r"^(#|//) ?", "", line.strip()) for line in text.splitlines())
    return " ".join(" ".join(lines).split())


def statement(name):
    """The lines of a task's text, without its solution."""
    problem_set, short = name.split("/")
    text = SOLUTIONS[problem_set].read_text(encoding="utf-8")
    cell = text.index(f'# %% solution="{short}"')
    lines = text[text.rindex("\n# ## ", 0, cell) : text.find("\n# %% grade=", cell)]
    return re.sub(r"### BEGIN SOLUTION.*?### END SOLUTION", "", lines, flags=re.DOTALL)


def sentences(name):
    """Its sentences, without code, tables and drawings, and without what a docstring begins with: the task
    in one sentence, which every row asks for.
    """
    for cell in re.split(r"\n(?=# %%)", statement(name)):
        if "solution=" in cell.partition("\n")[0]:
            parts = [part for text in _docstrings(cell) for part in _parts(text)]
        elif "[markdown]" in cell.partition("\n")[0] or cell.startswith("\n# ##"):
            body = re.sub(r"```.*?```", "\n\n", re.sub(r"(?m)^# ?", "", cell), flags=re.DOTALL)
            kept = [line for line in body.split("\n") if not line.startswith(("|", "%%", "##"))]
            parts = re.split(r"\n\s*\n|\n(?=- |\d\. )", "\n".join(kept))
        else:
            continue
        for part in parts:
            plain = re.sub(r"^(\d\.|-) ", "", " ".join(part.split()))
            yield from (one for one in re.split(r"(?<=[.!?]) (?=[A-Z`*$])", plain) if one)


def words_of_set(problem_set):
    """How many words a student reads in a set: those of its text cells, without drawings and code between
    ``` and without sample answers, and of the docstrings and comments of the cells that are to be filled.
    A word is what stands between blanks and has a letter or a digit.
    """
    text = SOLUTIONS[problem_set].read_text(encoding="utf-8")
    text = re.sub(r"### BEGIN SOLUTION.*?### END SOLUTION", "", text, flags=re.DOTALL)
    told = []
    for cell in text.split("\n# %%")[1:]:
        head, _, body = cell.partition("\n")
        if "[markdown]" in head:
            told.append(re.sub(r"```.*?```", "", re.sub(r"(?m)^# ?", "", body), flags=re.DOTALL))
        elif "solution=" in head:
            told += re.findall(r'"""(.*?)"""', body, re.DOTALL) + re.findall(r"(?m)^\s*// (.*)$", body)
    return sum(bool(re.search(r"\w", word)) for word in " ".join(told).split())


def _docstrings(cell):
    for text in re.findall(r'"""(.*?)"""', cell, re.DOTALL):
        yield re.sub(r"\A.*?(\.(?=\s)|\Z)", "", text, count=1, flags=re.DOTALL)
    for text in re.findall(r"((?:^// .*\n)+)", cell, re.MULTILINE):
        yield re.sub(r"(?m)^// ?", "", text)


def _parts(text):
    """Its paragraphs, steps and lines on arguments."""
    for paragraph in re.split(r"\n\s*\n", text):
        part = ""
        for line in paragraph.split("\n"):
            begins = re.match(r"\s{0,8}([\w, ]{1,30}?\s{2,}\S|\d\. |[A-Z])", line)
            if begins:
                yield part
                part = ""
            part += f" {line.strip()}"
        yield part


def asks(sentence):
    """Whether a sentence asks for something, or says a limit."""
    plain = re.sub(r"^\W+", "", sentence)
    verbs = "|".join(VERBS)
    asked = re.match(rf"({verbs})\b", plain) or re.match(rf"{LEAD}({verbs.lower()})\b", plain)
    return bool(asked or re.search(LIMIT, plain)) and not re.search(ADVICE, sentence)


def first_word(sentence):
    """The capitalised word that a sentence begins with, or None."""
    found = re.match(r"\W*([A-Z][a-z]+)\b", sentence)
    return found and found[1]
