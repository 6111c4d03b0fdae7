"""`autograder grade`: every submission of one problem set, validated, run apart, judged, recorded.

Safe to stop and to repeat.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import warplab
from autograder import results
from autograder.discover import Submission, find_submissions
from autograder.gradebook import ByHand, CourseGradebook, write_csv
from autograder.judge.faults import InternalError
from autograder.judge.judge import Cases, Verdict, judge_notebook, make_cases
from autograder.judge.process import NotStarted
from autograder.judge.reading import read_submission, reader
from autograder.layout import load_assignment
from autograder.release.release import nbgrader_config
from autograder.release.source import stable_json
from autograder.report import autograded_notebook, feedback_page, read_autograded
from autograder.sandbox import Launcher, Limits
from autograder.sandbox.choose import choose
from autograder.user_error import UserError
from autograder.validate import Checked, Malformed, read_bytes

FINAL = ("graded", "timeout", "crashed", "malformed", "missing")


@dataclass(frozen=True)
class Row:
    """One line of the closing table. Points are None where not graded.

    fresh: False when the result is from an earlier run.
    """

    student: str
    status: str
    score: float | None
    ungraded: float | None
    manual: float | None
    reason: str
    fresh: bool
    seconds: float = 0.0


@dataclass
class GradingJob:
    """One submission on its way: what was found, checked and judged."""

    submission: Submission
    key: str = ""
    checked: Checked | None = None
    verdict: Verdict | None = None
    status: str = ""
    reason: str = ""
    notes: list[str] = field(default_factory=list)


class Grading:
    """One run over a folder of submissions. `rows()` yields a Row per student as each is done.

    root: the course folder. name: "ps04". out: gets gradebook.db, grades.csv, autograded/, feedback/,
    results/.
    seconds: wall-clock limit of one cell or task. seed: of the judge's inputs (default: this out folder's
    secret one).
    sandbox: a Launcher (default: the sandbox that works here; raises NoSandbox where none does). student:
    this one alone.
    """

    def __init__(
        self,
        root: str | Path,
        name: str,
        submissions: str | Path,
        out: str | Path,
        *,
        seconds: float = 30.0,
        seed: int | None = None,
        jobs: int = 1,
        sandbox: Launcher | None = None,
        student: str | None = None,
    ) -> None:
        self.root = root
        self.assignment = load_assignment(root, name)
        self.submissions = [
            one for one in find_submissions(submissions, self.assignment) if student in (None, one.student)
        ]
        self.inside = Path(submissions)
        self.out = Path(out)
        self.limits = Limits.of(seconds)
        self.sandbox = sandbox or choose()
        self.jobs = max(1, jobs)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            self.seed = results.secret_seed(self.out) if seed is None else seed
        except (OSError, ValueError) as problem:
            raise UserError(f"cannot write to {self.out}: {problem}; choose another --out folder") from None
        self.stored = results.Results(self.out, name)
        self.version = results.course_version()
        self._cases: Cases | None = None

    @property
    def cases(self) -> Cases:
        """The judge's inputs, made once a run and only if something is to be graded."""
        if self._cases is None:
            self._cases = make_cases(self.assignment, self.seed)
        return self._cases

    def rows(self) -> Iterator[Row]:
        """Grade what is new or changed.

        Stops cleanly on Ctrl-C, with everything already yielded safely recorded.
        """
        with only_one(self.out), CourseGradebook(self.out, nbgrader_config(self.root)) as book:
            book.add_assignment(self.assignment)
            waiting: list[GradingJob] = []
            try:
                for submission in self.submissions:
                    job = self._prepare(submission)
                    known = self.stored.read(submission.student)
                    if known and self._still_holds(book, job, known):
                        book.penalise(self.assignment, submission.student)
                        verdict = Verdict.from_dict(known["verdict"]) if known["verdict"] else None
                        self._give_feedback(book, job, known, verdict)
                        yield row_of(known, False, book.by_hand(self.assignment, submission.student))
                    elif job.status:
                        yield self._record(book, job)
                    else:
                        waiting.append(job)
                if waiting:
                    yield from self._judge_all(book, waiting)
            finally:
                write_csv(book.gradebook, self.out, self.out / "grades.csv")

    def _judge_all(self, book: CourseGradebook, waiting: list[GradingJob]) -> Iterator[Row]:
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

    def _prepare(self, submission: Submission) -> GradingJob:
        """What one submission's key is made of. Its file is taken in as bytes, and nothing is read in it."""
        job = GradingJob(submission)
        data = b""
        if submission.path is None:
            job.status, job.reason = "missing", submission.reason
        else:
            try:
                data = self._bytes_of(submission.path, submission.student)
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

    def _bytes_of(self, path: Path, student: str) -> bytes:
        """A submitted file, taken in twice, so that a class of large ones need not be held in memory."""
        return read_bytes(path, inside=self.inside / student)

    def _judge(self, job: GradingJob) -> GradingJob:
        """Runs in a thread; the file is read and the student's code runs in processes of their own."""
        assert job.submission.path is not None  # what is missing is never judged
        try:
            with reader(self.sandbox) as process:
                data = self._bytes_of(job.submission.path, job.submission.student)
                job.checked = read_submission(data, self.assignment, process)
                job.notes = [defect.text for defect in job.checked.notes]
                job.verdict = judge_notebook(
                    self.assignment, job.checked, self.cases, self.sandbox, self.limits
                )
            job.status, job.reason = job.verdict.status, job.verdict.reason
        except Malformed as malformed:
            job.status, job.reason = "malformed", str(malformed)
        except NotStarted as problem:
            job.status, job.reason = "not graded", f"the worker did not run: {problem}"
        except InternalError as problem:
            job.status, job.reason = "not graded", f"fault in the task, not in the submission: {problem}"
        except Exception as problem:  # noqa: BLE001 - what nobody thought of costs one grade, not the others'
            text = f"{type(problem).__name__}: {str(problem)[:300]}"
            job.status, job.reason = "not graded", f"fault in the grader: {text}"
        return job

    def _record(self, book: CourseGradebook, job: GradingJob) -> Row:
        """Write notebook, gradebook (in one transaction), page, and last the result that says "done"."""
        student = job.submission.student
        record: results.StoredRecord = {
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
            if job.verdict and job.checked:
                notebook = autograded_notebook(job.checked.notebook, job.verdict)
                results.write_atomic(self.autograded(student), stable_json(notebook))
            book.save(self.assignment, student, scores, timestamp_of(job.submission))
            self._give_feedback(book, job, record, job.verdict)
        self.stored.write(student, record)
        return row_of(record, True, book.by_hand(self.assignment, student))

    def _give_feedback(
        self, book: CourseGradebook, job: GradingJob, record: results.StoredRecord, verdict: Verdict | None
    ) -> None:
        """Write the page, with what a person has entered in formgrader by now.

        The notebook of an earlier run is the judge's own file of then, so that nobody reads the student's.
        """
        student = record["student"]
        if record["status"] != "missing":
            notebook = job.checked.notebook if job.checked else read_autograded(self.autograded(student))
            page = feedback_page(
                self.assignment, student, record, notebook, verdict, book.by_hand(self.assignment, student)
            )
            results.write_atomic(self.feedback(student), page.encode())

    def feedback(self, student: str) -> Path:
        """Path of one student's feedback page."""
        return self._file("feedback", student, ".html")

    def autograded(self, student: str) -> Path:
        """Path of one student's judged notebook, which formgrader shows."""
        return self._file("autograded", student, ".ipynb")

    def _file(self, step: str, student: str, suffix: str) -> Path:
        return self.out / step / student / self.assignment.name / f"{self.assignment.notebook}{suffix}"

    def _still_holds(self, book: CourseGradebook, job: GradingJob, known: results.StoredRecord) -> bool:
        """Whether an earlier run decided about just this, and all that it wrote is there."""
        final = known["key"] == job.key and known["status"] in FINAL
        return final and self._recorded(book, known)

    def _recorded(self, book: CourseGradebook, record: results.StoredRecord) -> bool:
        """Whether the gradebook and the files of an earlier run are still there."""
        student = record["student"]
        if record["status"] == "missing":
            return True
        there = self.feedback(student).exists() and book.has(self.assignment, student)
        return there and (not record["verdict"] or read_autograded(self.autograded(student)) is not None)


@contextlib.contextmanager
def only_one(out: Path) -> Generator[None, None, None]:
    """The gradebook has one writer: a second run into the same folder is refused."""
    with open(out / ".lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another run is grading into {out}; wait for it, or choose another --out folder"
            ) from None
        yield


def row_of(record: results.StoredRecord, fresh: bool, by_hand: ByHand) -> Row:
    """A stored record as a Row, with what CourseGradebook.by_hand tells of it."""
    student, status, reason = record["student"], record["status"], record["reason"]
    if not record["verdict"]:
        return Row(student, status, None, None, None, reason, fresh)
    verdict = Verdict.from_dict(record["verdict"])
    given, _, penalty = by_hand
    earned = math.fsum(given.get(key, cell.points) or 0.0 for key, cell in verdict.cells.items())
    score = round(max(0.0, earned - penalty), 2)
    ungraded, manual = verdict.pending("ungraded", given), verdict.pending("manual", given)
    return Row(student, status, score, ungraded, manual, reason, fresh, verdict.seconds)


def timestamp_of(submission: Submission) -> str | None:
    """nbgrader's timestamp.txt beside the notebook, as text; None if there is none or it is not a time."""
    from nbgrader.utils import parse_utc

    file = submission.folder / "timestamp.txt"
    if file.is_symlink() or not file.is_file() or file.stat().st_size > 200:
        return None
    try:
        return str(parse_utc(file.read_text(encoding="utf-8").strip()))
    except (ValueError, OverflowError, UnicodeDecodeError):
        return None
