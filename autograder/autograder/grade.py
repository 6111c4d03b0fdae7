"""`autograder grade`: validate, run, judge and record every submission of one problem set.

A run may be stopped at any time; the next one goes on where it stopped.
"""

import contextlib
import fcntl
import functools
from collections import Counter, deque
from collections.abc import Collection, Generator, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy.exc import OperationalError

from autograder import results
from autograder.csv_tables import guard
from autograder.discover import Submission, find_submissions
from autograder.gradebook import ByHand, CourseGradebook, write_csv
from autograder.judge.judge import Verdict, check_points, legible
from autograder.layout import load_assignment
from autograder.receipt import exchange_time, received_times
from autograder.release.release import nbgrader_config
from autograder.release.source import stable_json
from autograder.report.page import Pages, read_autograded, verdict_of
from autograder.roster import read_roster
from autograder.sandbox import Limits
from autograder.sandbox.choose import choose
from autograder.user_error import UserError, nearest
from autograder.validate import Defect, Malformed, checked, read_bytes
from autograder.worked import worked
from autograder.workers.commission import Commission, Conditions
from autograder.workers.event_log import EventLog
from autograder.workers.interrupts import deferred_interrupts, stop_if_asked
from autograder.workers.pool import Pool, Threads
from autograder.workers.ruling import Ruling, fault_of, without_grade

FINAL = ("graded", "timeout", "crashed", "malformed", "missing")


@dataclass(frozen=True)
class Row:
    """One student's line in the table that closes a run. Points are None where not graded.

    score: points given. ungraded: points that wait for a GPU. manual: points that wait for a person.
    fresh: False where the result is from an earlier run. seconds: how long judging took. submission: as
    GradingJob.id.
    """

    student: str
    status: str
    score: float | None
    ungraded: float | None
    manual: float | None
    reason: str
    fresh: bool
    seconds: float = 0.0
    submission: str = ""


@dataclass
class GradingJob:
    """One submission while it is being graded.

    key: hash of all that its result depends on. attempts, attempt: as in results.StoredRecord; `before` are
    the attempts of earlier runs. same_file: whether the last run judged this same notebook. ruling: None
    until it is decided.
    """

    submission: Submission
    key: str = ""
    before: results.Attempts = field(default_factory=list)
    attempts: results.Attempts = field(default_factory=list)
    attempt: int = 0
    same_file: bool = False
    ruling: Ruling | None = None

    @property
    def id(self) -> str:
        """The submission's name in log, table and feedback page: a hash of student and notebook, so that it
        stays the same however often it is judged; "" where no notebook could be read."""
        read = self.attempts[self.attempt - 1][0] if self.attempt else None
        return results.key_of(self.submission.student, read)[:12] if read else ""

    @property
    def round(self) -> int:
        """The round of inputs that this submission is judged on."""
        return self.attempts[self.attempt - 1][1]


@dataclass(frozen=True)
class Asked:
    """The options of one run.

    seconds: wall-clock limit of one cell or task. seed: of the judge's inputs (default: the secret seed of
    the out folder). students: only these, by the names of their folders (default: all). regrade: also judge
    unchanged submissions again, on the inputs they were first judged on.
    received: a CSV file with the times of arrival. exchange: take them from the timestamp.txt that nbgrader's
    exchange leaves. With neither, only times that an earlier run entered for the same notebook are known.
    fresh: the round of inputs for new notebooks (default: the next one).
    """

    seconds: float = 30.0
    seed: int | None = None
    students: Collection[str] = ()
    regrade: bool = False
    received: str | Path | None = None
    exchange: bool = False
    fresh: int | None = None


class Grading:
    """One run over a folder of submissions. `rows()` yields a Row per student as each is done.

    An error in one submission becomes that student's row, with the reason, and does not stop the run. Each
    run draws new inputs for new notebooks; a notebook that was judged before gets the inputs of that time.

    root: the course folder. name: "ps04". out: gets gradebook.db, grades.csv, autograded/, feedback/,
    results/. pool: where submissions are judged (default: one at a time on this machine, in the sandbox;
    raises NoSandbox where that does not work). events: its log becomes OUT/log.jsonl.
    """

    def __init__(
        self,
        root: str | Path,
        name: str,
        submissions: str | Path,
        out: str | Path,
        asked: Asked | None = None,
        *,
        pool: Pool | None = None,
        events: EventLog | None = None,
    ) -> None:
        self.asked = asked = asked or Asked()
        self.root = root
        self.assignment = load_assignment(root, name)
        check_points(self.assignment)
        self.submissions = chosen(find_submissions(submissions, self.assignment), asked.students, submissions)
        self.times = received_times(asked.received) if asked.received else {}
        self.without_time: list[str] = []
        self.out = Path(out)
        self.limits = Limits.of(asked.seconds)
        self.pool = pool or Threads(choose())
        self.events = events or EventLog()
        try:
            self.out.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.events.log_to(self.out / "log.jsonl")
            self.seed = results.secret_seed(self.out) if asked.seed is None else asked.seed
        except (OSError, ValueError) as problem:
            raise UserError(f"cannot write to {self.out}: {problem}; choose another --out folder") from None
        self.stored = results.Results(self.out, name)
        self.pages = Pages(self.out, self.assignment, worked(Path(root), name))
        self.fresh = self.stored.next_round() if asked.fresh is None else asked.fresh
        self.version = results.course_version()
        released, where = stable_json(self.assignment.document), (*self.pool.device, self.seed, self.limits)
        self.conditions = released, self.version, *where, is_unsafe(self.pool.isolation)

    def rows(self) -> Iterator[Row]:
        """Grade the new and changed submissions; yields a Row for every submission.

        Ctrl-C stops between two submissions; every row yielded by then is recorded. Raises UserError while
        another run grades into the same folder.
        """
        told: Counter[str] = Counter()
        name, size = self.assignment.name, len(self.submissions)
        with grading_lock(self.out), deferred_interrupts():
            self.events.tell("started", assignment=name, submissions=size, isolation=self.pool.isolation)
            try:
                for row in self._rows():
                    told[row.status] += 1
                    self.events.tell("decided", **asdict(row))
                    yield row
            finally:
                how = "finished" if told.total() == size else "stopped"
                self.events.tell(how, assignment=name, submissions=size, decided=told)

    def _rows(self) -> Iterator[Row]:
        with CourseGradebook(self.out, nbgrader_config(self.root)) as book:
            book.add_assignment(self.assignment)
            book.enter_names(read_roster(None, Path(self.root)))
            book.look_up(self.assignment)
            waiting: list[GradingJob] = []
            try:
                for submission in self.submissions:
                    stop_if_asked()
                    job = GradingJob(submission)
                    row = self._begin(book, job)
                    if row or job.ruling:
                        yield row or self._record(book, job)
                    else:
                        waiting.append(job)
                if waiting:
                    yield from self._judge_all(book, sorted(waiting, key=lambda job: job.round))
            finally:
                book.forget()  # Ctrl-C may have interrupted a database query
                self.without_time = book.without_time(self.assignment)
                write_csv(book.gradebook, self.out, self.out / "grades.csv")

    def _begin(self, book: CourseGradebook, job: GradingJob) -> Row | None:
        """The Row of a submission whose result from an earlier run still holds; else None.

        Fills in the job; its `ruling` is set where the submission cannot be judged at all.
        """
        student = job.submission.student
        try:
            known = self.stored.read(student)
            job.before = known.get("attempts", []) if known else []
            self._prepare(job)
            job.same_file = bool(known and job.attempt and job.attempt == known.get("attempt"))
            if not known or not self._still_holds(book, job, known):
                return None
            book.penalise(self.assignment, student, self._received(job.submission))
            if known.get("page") != self.pages.key(book, student):
                verdict = verdict_of(book, self.assignment, known)
                if verdict:  # the list of changes may have been restored from a copy: enter the points anew
                    book.enter_again(self.assignment, student, verdict.points, {})
                self.pages.write_feedback(book, known)
                self.stored.write(student, known)
            return self._row(book, known, False)
        except OperationalError:  # the gradebook cannot be used at all: that ends the run
            raise
        except Exception as problem:  # noqa: BLE001 - an unforeseen error costs one grade, not the run
            book.forget()
            job.ruling = without_grade("", fault_of(problem))
            return None

    def _received(self, submission: Submission) -> datetime | None:
        """When it arrived, in UTC; None where that is not known.

        A time from --received is also written beside the notebook, as nbgrader's exchange does: formgrader
        shows a submission as graded only if the time there equals the gradebook's.
        """
        folder = submission.home / self.assignment.name
        if self.asked.exchange:
            return exchange_time(folder)
        student = submission.student
        # `collect` writes guarded names, a person plain ones
        received = self.times.get(guard(student), self.times.get(student))
        if received and submission.path and submission.path.parent == folder and not folder.is_symlink():
            results.write_atomic(folder / "timestamp.txt", f"{received} UTC\n".encode())
        return received

    def _judge_all(self, book: CourseGradebook, waiting: list[GradingJob]) -> Iterator[Row]:
        """Send the jobs to the pool, and record each as soon as its ruling comes back."""
        jobs = {self._commission(job): job for job in waiting}
        with contextlib.closing(self.pool.rulings(deque(jobs), self.events)) as rulings:
            for one, ruling in rulings:
                jobs[one].ruling = ruling
                yield self._record(book, jobs[one])
                stop_if_asked()

    def _commission(self, job: GradingJob) -> Commission:
        student, seed = job.submission.student, results.seed_of_round(self.seed, job.round)
        identity = results.key_of(job.key, student)
        unsafe = is_unsafe(self.pool.isolation)
        conditions = Conditions(identity, self.version, self.assignment, seed, self.limits, unsafe)
        return Commission(student, conditions, functools.partial(self._same_bytes, job), job.id)

    def _prepare(self, job: GradingJob) -> None:
        """Set the job's key and attempts, and its ruling if it has no notebook. Nothing is parsed here."""
        submission, data = job.submission, b""
        if submission.path is None:
            job.ruling = Ruling("", submission.status, submission.reason)
        else:
            try:
                data = self._bytes_of(submission)
                job.attempts, job.attempt = results.with_attempt(job.before, results.key_of(data), self.fresh)
            except Malformed as malformed:
                job.ruling = Ruling("", "malformed", legible(str(malformed)))
                data = str(malformed).encode()
        job.key = results.key_of(data, *self.conditions, job.ruling.reason if job.ruling else "")

    def _bytes_of(self, submission: Submission) -> bytes:
        """The submitted file's bytes. They are read again for judging, as a class's do not fit in memory."""
        assert submission.path is not None  # a missing submission is never read
        return read_bytes(submission.path, inside=submission.home)

    def _same_bytes(self, job: GradingJob) -> bytes:
        """The file's bytes again. Raises Malformed if they differ from those the job's key was made of."""
        data = self._bytes_of(job.submission)
        if results.key_of(data) != job.attempts[job.attempt - 1][0]:
            raise Malformed([Defect("changed", "the file changed while it was graded")])
        return data

    def _record(self, book: CourseGradebook, job: GradingJob) -> Row:
        """Record a job's ruling; where that fails, record "not graded" with the error instead."""
        try:
            return self._written(book, job)
        except OperationalError:
            raise
        except Exception as problem:  # noqa: BLE001 - an unforeseen error costs one grade, not the run
            book.forget()
            job.ruling = without_grade("", fault_of(problem))
            self.stored.write(job.submission.student, self._record_of(job))
            return row_of(self._record_of(job), True, None, ByHand())

    def _record_of(self, job: GradingJob) -> results.StoredRecord:
        ruling = job.ruling
        assert ruling is not None  # only decided jobs are recorded
        judged = ruling.status not in ("malformed", "missing")
        return {
            "student": job.submission.student,
            "assignment": self.assignment.name,
            "key": job.key,
            "status": ruling.status,
            "reason": ruling.reason,
            "notes": [*ruling.notes],
            "isolation": ruling.isolation or self.pool.isolation,
            "verdict": asdict(ruling.verdict) if ruling.verdict else None,
            "attempts": job.attempts if judged else job.before,
            "attempt": job.attempt if judged else 0,
            "submission": job.id,
        }

    def _written(self, book: CourseGradebook, job: GradingJob) -> Row:
        """Write notebook, gradebook (one transaction), feedback page, and last the stored result.

        A stop before the result is written makes the next run repeat this submission.
        """
        student, record, ruling = job.submission.student, self._record_of(job), job.ruling
        verdict = verdict_of(book, self.assignment, record)
        if record["status"] != "missing":
            self.pages.autograded(student).unlink(missing_ok=True)
            if verdict and ruling and ruling.cells:
                notebook = checked(ruling.cells, self.assignment).notebook
                self.pages.write_notebook(student, notebook, verdict, job.attempt)
            scores = verdict.points if verdict else {}
            book.save(self.assignment, student, scores, self._received(job.submission), job.same_file)
        self.pages.write_feedback(book, record)
        self.stored.write(student, record)
        return self._row(book, record, True)

    def _row(self, book: CourseGradebook, record: results.StoredRecord, fresh: bool) -> Row:
        verdict = verdict_of(book, self.assignment, record)
        return row_of(record, fresh, verdict, book.by_hand(self.assignment, record["student"]))

    def _still_holds(self, book: CourseGradebook, job: GradingJob, known: results.StoredRecord) -> bool:
        """Whether an earlier run's result is for this same key, and all files that it wrote still exist."""
        if known["key"] != job.key or known["status"] not in FINAL or self.asked.regrade:
            return False
        if known["status"] == "missing":
            return True
        student = known["student"]
        there = self.pages.feedback(student).exists() and book.has(self.assignment, student)
        return there and (not known["verdict"] or read_autograded(self.pages.autograded(student)) is not None)


@contextlib.contextmanager
def grading_lock(out: Path) -> Generator[None, None, None]:
    """Lock a grades folder, whose gradebook has one writer. Raises UserError while another run holds it."""
    with open(out / ".lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another run is grading into {out}, or changes grades there; wait for it, or choose "
                "another folder"
            ) from None
        yield


def chosen(found: list[Submission], students: Collection[str], where: str | Path) -> list[Submission]:
    """The submissions of the named students; all if none is named. Raises UserError for an unknown name."""
    homes = {one.home.name for one in found}
    for name in students:
        if name not in homes:
            raise UserError(f"no folder {name} in {where}{nearest(name, homes)}")
    return [one for one in found if not students or one.home.name in students]


def is_unsafe(isolation: str) -> bool:
    """Whether student code ran without a sandbox. isolation: as stored with its grade."""
    return isolation.startswith("unsafe")


def row_of(record: results.StoredRecord, fresh: bool, verdict: Verdict | None, by_hand: ByHand) -> Row:
    """A stored record as a Row, with the points of `verdict` and those given by hand."""
    student, status, submission = record["student"], record["status"], record.get("submission", "")
    reason = "; ".join(filter(None, (record["reason"], by_hand.late)))
    if verdict is None:
        return Row(student, status, None, None, None, reason, fresh, submission=submission)
    points = verdict.so_far(by_hand.scores, by_hand.penalty)
    return Row(student, status, *points, reason, fresh, verdict.seconds, submission)
