"""`autograder grade`: every submission of one assignment, validated, run apart, judged, recorded; safe to stop and to repeat."""

import contextlib
import fcntl
import math
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

import warplab
from autograder import results
from autograder.discover import find_submissions
from autograder.errors import UserError
from autograder.gradebook import Book, write_csv
from autograder.judge.faults import InternalError
from autograder.judge.judge import Verdict, judge_notebook, make_cases
from autograder.judge.process import NotStarted
from autograder.layout import load_assignment
from autograder.release.release import nbgrader_config
from autograder.release.source import stable_json
from autograder.report import autograded_notebook, feedback_page
from autograder.sandbox import Limits
from autograder.sandbox.choose import choose
from autograder.validate import Malformed, check_file

FINAL = ("graded", "timeout", "crashed", "malformed", "missing")


@dataclass(frozen=True)
class Row:
    """One line of the closing table. fresh: False when the result is from an earlier run. Points are None where not graded."""

    student: str
    status: str
    score: float | None
    ungraded: float | None
    manual: float | None
    reason: str
    fresh: bool
    seconds: float = 0.0


@dataclass
class Job:
    """One submission on its way: what was found, checked and judged."""

    submission: object
    key: str = ""
    checked: object = None
    verdict: Verdict | None = None
    status: str = ""
    reason: str = ""
    notes: list = field(default_factory=list)


class Grading:
    """One run over a folder of submissions. `rows()` yields a Row per student as each is done.

    root: the course folder. name: "ps04". out: gets gradebook.db, grades.csv, autograded/, feedback/, results/.
    seconds: wall-clock limit of one cell or task. seed: of the judge's inputs (default: this out folder's secret one).
    sandbox: a Launcher (default: the sandbox that works here; raises NoSandbox where none does). student: this one alone.
    """

    def __init__(self, root, name, submissions, out, *, seconds=30.0, seed=None, jobs=1, sandbox=None, student=None):
        self.root = root
        self.assignment = load_assignment(root, name)
        self.submissions = [one for one in find_submissions(submissions, self.assignment) if student in (None, one.student)]
        self.inside = Path(submissions)
        self.out = Path(out)
        self.limits = Limits(step_seconds=seconds, total_seconds=10 * seconds)
        self.sandbox = sandbox or choose()
        self.jobs = max(1, jobs)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            self.seed = results.secret_seed(self.out) if seed is None else seed
        except (OSError, ValueError) as problem:
            raise UserError(f"cannot write to {self.out}: {problem}; choose another --out folder") from None
        self.stored = results.Results(self.out, name)
        self.version = results.course_version()
        self._cases = None

    @property
    def cases(self):
        """The judge's inputs, made once a run and only if something is to be graded."""
        if self._cases is None:
            self._cases = make_cases(self.assignment, self.seed)
        return self._cases

    def rows(self):
        """Grade what is new or changed; stop cleanly on Ctrl-C, with everything already yielded safely recorded."""
        with only_one(self.out), Book(self.out, nbgrader_config(self.root)) as book:
            book.add_assignment(self.assignment)
            waiting = []
            try:
                for submission in self.submissions:
                    job = self._prepare(submission)
                    known = self.stored.read(submission.student)
                    if known and known["key"] == job.key and known["status"] in FINAL and self._recorded(book, known):
                        book.penalise(self.assignment, submission.student)
                        self._give_feedback(book, job, known, Verdict.from_dict(known["verdict"]) if known["verdict"] else None)
                        yield row_of(known, False, book.by_hand(self.assignment, submission.student))
                    elif job.status:
                        yield self._record(book, job)
                    else:
                        waiting.append(job)
                if waiting:
                    yield from self._judge_all(book, waiting)
            finally:
                write_csv(book.gradebook, self.out, self.out / "grades.csv")

    def _judge_all(self, book, waiting):
        assert self.cases is not None  # made here, before the threads share them
        pool = ThreadPoolExecutor(self.jobs)
        try:
            running = {pool.submit(self._judge, job) for job in waiting}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield self._record(book, future.result())
        finally:
            self.sandbox.stopping.set()
            pool.shutdown(wait=True, cancel_futures=True)
            self.sandbox.stopping.clear()

    def _prepare(self, submission):
        """Read and validate one submission; nothing of the student's runs here."""
        job = Job(submission)
        data = b""
        if submission.path is None:
            job.status, job.reason = "missing", submission.reason
        else:
            try:
                job.checked = check_file(submission.path, self.assignment, inside=self.inside / submission.student)
                data, job.checked = job.checked.data, replace(job.checked, data=b"")
                job.notes = [defect.text for defect in job.checked.notes]
            except Malformed as malformed:
                job.status, job.reason = "malformed", str(malformed)
                data = str(malformed).encode()
        device = warplab.device()
        job.key = results.key_of(
            data,
            timestamp_of(submission) or "",
            stable_json(self.assignment.document),
            self.version,
            device.name,
            device.arch,
            self.seed,
            self.limits,
            self.sandbox.isolation,
            job.reason,
        )
        return job

    def _judge(self, job):
        """Runs in a thread; the student's code runs in a process of its own."""
        try:
            job.verdict = judge_notebook(self.assignment, job.checked.notebook, self.cases, self.sandbox, self.limits)
            job.status, job.reason = job.verdict.status, job.verdict.reason
        except NotStarted as problem:
            job.status, job.reason = "not graded", f"the worker did not run: {problem}"
        except InternalError as problem:
            job.status, job.reason = "not graded", f"fault in the task, not in the submission: {problem}"
        except Exception as problem:  # noqa: BLE001 - what nobody thought of costs one grade, and not those of the others
            job.status, job.reason = "not graded", f"fault in the grader: {type(problem).__name__}: {str(problem)[:300]}"
        return job

    def _record(self, book, job):
        """The notebook, then the gradebook in one transaction, then the page, then the result that says "done"."""
        student = job.submission.student
        record = {
            "student": student,
            "assignment": self.assignment.name,
            "key": job.key,
            "status": job.status,
            "reason": job.reason,
            "notes": job.notes,
            "isolation": self.sandbox.isolation,
            "verdict": job.verdict.as_dict() if job.verdict else None,
        }
        if job.status != "missing":
            scores = {key: cell.points for key, cell in job.verdict.cells.items()} if job.verdict else {}
            self.autograded(student).unlink(missing_ok=True)
            if job.verdict:
                notebook = autograded_notebook(job.checked.notebook, job.verdict)
                results.write_atomic(self.autograded(student), stable_json(notebook))
            book.save(self.assignment, student, scores, timestamp_of(job.submission))
            self._give_feedback(book, job, record, job.verdict)
        self.stored.write(student, record)
        return row_of(record, True, book.by_hand(self.assignment, student))

    def _give_feedback(self, book, job, record, verdict):
        """Write the page, with what a person has entered in formgrader by now."""
        student = record["student"]
        if record["status"] != "missing":
            notebook = job.checked and job.checked.notebook
            page = feedback_page(self.assignment, student, record, notebook, verdict, book.by_hand(self.assignment, student))
            results.write_atomic(self.feedback(student), page.encode())

    def feedback(self, student):
        """Path of one student's feedback page."""
        return self._file("feedback", student, ".html")

    def autograded(self, student):
        """Path of one student's judged notebook, which formgrader shows."""
        return self._file("autograded", student, ".ipynb")

    def _file(self, step, student, suffix):
        return self.out / step / student / self.assignment.name / f"{self.assignment.notebook}{suffix}"

    def _recorded(self, book, record):
        """Whether the gradebook and the files of an earlier run are still there."""
        student = record["student"]
        if record["status"] == "missing":
            return True
        files = [self.feedback(student), *([self.autograded(student)] if record["verdict"] else [])]
        return book.has(self.assignment, student) and all(file.exists() for file in files)


@contextlib.contextmanager
def only_one(out):
    """The gradebook has one writer: a second run into the same folder is refused."""
    with open(out / ".lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another run is grading into {out}; wait for it, or choose another --out folder") from None
        yield


def row_of(record, fresh, by_hand):
    """A stored record as a Row, with what Book.by_hand tells of it."""
    figures, seconds, (given, _, penalty) = (None, None, None), 0.0, by_hand
    if record["verdict"]:
        verdict = Verdict.from_dict(record["verdict"])
        score = math.fsum(given.get(key, cell.points) or 0.0 for key, cell in verdict.cells.items())
        figures = (round(max(0.0, score - penalty), 2), verdict.pending("ungraded", given), verdict.pending("manual", given))
        seconds = verdict.seconds
    return Row(record["student"], record["status"], *figures, record["reason"], fresh, seconds)


def timestamp_of(submission):
    """nbgrader's timestamp.txt beside the notebook, as text; None if there is none or it is not a time."""
    from nbgrader.utils import parse_utc

    file = submission.folder / "timestamp.txt"
    if file.is_symlink() or not file.is_file() or file.stat().st_size > 200:
        return None
    try:
        return str(parse_utc(file.read_text(encoding="utf-8").strip()))
    except (ValueError, OverflowError, UnicodeDecodeError):
        return None
