"""`autograder grade`: every submission of one problem set, validated, run apart, judged, recorded.

Safe to stop and to repeat.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy.exc import OperationalError

import warplab
from autograder import results
from autograder.discover import Submission, find_submissions
from autograder.gradebook import ByHand, CourseGradebook, write_csv
from autograder.judge.faults import InternalError
from autograder.judge.judge import Cases, Verdict, judge_notebook, legible, make_cases
from autograder.judge.process import NotStarted
from autograder.judge.reading import read_submission, reader
from autograder.layout import load_assignment
from autograder.receipt import exchange_time, received_times
from autograder.release.release import nbgrader_config
from autograder.release.source import stable_json
from autograder.report import autograded_notebook, feedback_page, read_autograded
from autograder.sandbox import Launcher, Limits
from autograder.sandbox.choose import choose
from autograder.user_error import UserError
from autograder.validate import Checked, Defect, Malformed, read_bytes

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
    """One submission on its way: what was found, checked and judged.

    attempts, attempt: as in results.StoredRecord; `before` are those of earlier runs. same_file: whether the
    last run found this notebook, too.
    """

    submission: Submission
    key: str = ""
    before: results.Attempts = field(default_factory=list)
    attempts: results.Attempts = field(default_factory=list)
    attempt: int = 0
    same_file: bool = False
    checked: Checked | None = None
    verdict: Verdict | None = None
    status: str = ""
    reason: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def round(self) -> int:
        """The round of inputs that this submission is judged on."""
        return self.attempts[self.attempt - 1][1]

    def not_graded(self, why: str) -> None:
        """Nobody's grade: the next run tries again."""
        self.verdict, self.status, self.reason = None, "not graded", legible(why)


class Grading:
    """One run over a folder of submissions. `rows()` yields a Row per student as each is done.

    Whatever goes wrong with one submission is that student's row, with the reason. Each run draws fresh
    inputs for what nobody has handed in before; what was judged once is always judged on the same ones.

    root: the course folder. name: "ps04". out: gets gradebook.db, grades.csv, autograded/, feedback/,
    results/.
    seconds: wall-clock limit of one cell or task. seed: of the judge's inputs (default: this out folder's
    secret one).
    sandbox: a Launcher (default: the sandbox that works here; raises NoSandbox where none does). student:
    this one alone, by the name of the folder.
    received: a CSV file with the times of arrival. exchange: they are in the timestamp.txt that nbgrader's
    exchange leaves. With neither, no time is known but what an earlier run entered for the same notebook.
    fresh: the round of inputs for new notebooks (default: the next one).
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
        received: str | Path | None = None,
        exchange: bool = False,
        fresh: int | None = None,
    ) -> None:
        self.root = root
        self.assignment = load_assignment(root, name)
        self.submissions = [
            one for one in find_submissions(submissions, self.assignment) if student in (None, one.home.name)
        ]
        self.times = received_times(received) if received else {}
        self.exchange = exchange
        self.without_time: list[str] = []
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
        self.fresh = self.stored.next_round() if fresh is None else fresh
        self.version = results.course_version()
        self._cases: dict[int, Cases] = {}
        self._making = threading.Lock()

    def cases_of(self, number: int) -> Cases:
        """The judge's inputs of one round, made when a submission first asks for them.

        Submissions come in order of their rounds, so the last two are kept: a GPU's timed rows are large.
        """
        with self._making:
            if number not in self._cases:
                made = make_cases(self.assignment, results.seed_of_round(self.seed, number))
                self._cases = dict([*self._cases.items()][-1:]) | {number: made}
            return self._cases[number]

    def rows(self) -> Iterator[Row]:
        """Grade what is new or changed.

        Stops cleanly on Ctrl-C, with everything already yielded safely recorded.
        """
        with only_one(self.out), CourseGradebook(self.out, nbgrader_config(self.root)) as book:
            book.add_assignment(self.assignment)
            waiting: list[GradingJob] = []
            try:
                for submission in self.submissions:
                    job = GradingJob(submission)
                    row = self._begin(book, job)
                    if row or job.status:
                        yield row or self._record(book, job)
                    else:
                        waiting.append(job)
                if waiting:
                    yield from self._judge_all(book, sorted(waiting, key=lambda job: job.round))
            finally:
                book.forget()  # Ctrl-C may have come in the middle of a question to it
                self.without_time = book.without_time(self.assignment)
                write_csv(book.gradebook, self.out, self.out / "grades.csv")

    def _begin(self, book: CourseGradebook, job: GradingJob) -> Row | None:
        """The Row of a submission that an earlier run decided about; None for one that is to be done."""
        student = job.submission.student
        try:
            known = self.stored.read(student)
            job.before = known.get("attempts", []) if known else []
            self._prepare(job)
            job.same_file = bool(known and job.attempt and job.attempt == known.get("attempt"))
            if not known or not self._still_holds(book, job, known):
                return None
            book.penalise(self.assignment, student, self._received(job.submission))
            verdict = Verdict.from_dict(known["verdict"]) if known["verdict"] else None
            self._give_feedback(book, job, known, verdict)
            return row_of(known, False, book.by_hand(self.assignment, student))
        except OperationalError:  # the gradebook's, and everybody's
            raise
        except Exception as problem:  # noqa: BLE001 - what nobody thought of costs one grade, not the others'
            book.forget()
            job.not_graded(fault_of(problem))
            return None

    def _received(self, submission: Submission) -> datetime | None:
        """When it arrived, in UTC; None where that is not known."""
        if self.exchange:
            return exchange_time(submission.home / self.assignment.name)
        return self.times.get(submission.student)

    def _judge_all(self, book: CourseGradebook, waiting: list[GradingJob]) -> Iterator[Row]:
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

    def _prepare(self, job: GradingJob) -> None:
        """What one submission's key is made of. Its file is taken in as bytes, and nothing is read in it."""
        submission, data = job.submission, b""
        job.status, job.reason = submission.status, submission.reason
        if submission.path is not None:
            try:
                data = self._bytes_of(submission)
                job.attempts, job.attempt = results.with_attempt(job.before, results.key_of(data), self.fresh)
            except Malformed as malformed:
                job.status, job.reason = "malformed", legible(str(malformed))
                data = str(malformed).encode()
        device = warplab.device()
        job.key = results.key_of(
            data,
            stable_json(self.assignment.document),
            self.version,
            device.name,
            device.arch,
            self.seed,
            self.limits,
            self.sandbox.isolation,
            job.reason,
        )

    def _bytes_of(self, submission: Submission) -> bytes:
        """A submitted file, taken in twice, so that a class of large ones need not be held in memory."""
        assert submission.path is not None  # what is missing is never taken in
        return read_bytes(submission.path, inside=submission.home)

    def _judge(self, job: GradingJob) -> GradingJob:
        """Runs in a thread; the file is read and the student's code runs in processes of their own."""
        try:
            with reader(self.sandbox) as process:
                data = self._bytes_of(job.submission)
                if results.key_of(data) != job.attempts[job.attempt - 1][0]:
                    raise Malformed([Defect("changed", "the file changed while it was graded")])
                job.checked = read_submission(data, self.assignment, process)
                job.notes = [legible(defect.text) for defect in job.checked.notes]
                cases = self.cases_of(job.round)
                job.verdict = judge_notebook(self.assignment, job.checked, cases, self.sandbox, self.limits)
            job.status, job.reason = job.verdict.status, job.verdict.reason
        except Malformed as malformed:
            job.status, job.reason = "malformed", legible(str(malformed))
        except NotStarted as problem:
            job.not_graded(f"the worker did not run: {problem}")
        except InternalError as problem:
            job.not_graded(f"fault in the task, not in the submission: {problem}")
        except Exception as problem:  # noqa: BLE001 - what nobody thought of costs one grade, not the others'
            job.not_graded(fault_of(problem))
        return job

    def _record(self, book: CourseGradebook, job: GradingJob) -> Row:
        """Write what was decided; if that fails, write that it failed, and let that fail the run."""
        try:
            return self._written(book, job)
        except OperationalError:
            raise
        except Exception as problem:  # noqa: BLE001 - as in _judge
            book.forget()
            job.not_graded(fault_of(problem))
            self.stored.write(job.submission.student, self._record_of(job))
            return row_of(self._record_of(job), True, ({}, {}, 0.0))

    def _record_of(self, job: GradingJob) -> results.StoredRecord:
        judged = job.status not in ("malformed", "missing")
        return {
            "student": job.submission.student,
            "assignment": self.assignment.name,
            "key": job.key,
            "status": job.status,
            "reason": job.reason,
            "notes": job.notes,
            "isolation": self.sandbox.isolation,
            "verdict": job.verdict.as_dict() if job.verdict else None,
            "attempts": job.attempts if judged else job.before,
            "attempt": job.attempt if judged else 0,
        }

    def _written(self, book: CourseGradebook, job: GradingJob) -> Row:
        """Write notebook, gradebook (in one transaction), page, and last the result that says "done"."""
        student, record = job.submission.student, self._record_of(job)
        if job.status != "missing":
            scores = {key: cell.points for key, cell in job.verdict.cells.items()} if job.verdict else {}
            self.autograded(student).unlink(missing_ok=True)
            if job.verdict and job.checked:
                notebook = autograded_notebook(job.checked.notebook, job.verdict, job.attempt)
                results.write_atomic(self.autograded(student), stable_json(notebook))
            received = self._received(job.submission)
            book.save(self.assignment, student, scores, received, job.same_file)
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


def fault_of(problem: Exception) -> str:
    """What the row says of an error that nobody thought of."""
    return f"fault in the grader: {type(problem).__name__}: {str(problem)[:300]}"
