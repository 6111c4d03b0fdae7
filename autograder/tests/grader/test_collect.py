"""autograder collect: every way in, and everything unfit refused with its reason while the rest comes in."""

import csv
import json
import os
import re
import stat
import subprocess
import zipfile
from datetime import datetime
from warnings import catch_warnings, simplefilter

import pytest
from grading import command, hand_in, make_course, notebook
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_hostile_folders import without_roots_eyes

from autograder.collect import intake
from autograder.collect.handed_in import CollectOptions
from autograder.collect.platforms import checked_pattern, parse_name, top_folder
from autograder.collect.repositories import rows_of
from autograder.receipt import received_times
from autograder.roster import read_roster
from autograder.user_error import UserError

FILE = "ps01_tiny.ipynb"
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]


def collect(*where, **options):
    return intake.collect(*where, CollectOptions(**options))


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("collect") / "course")


@pytest.fixture
def take(course, tmp_path):
    """Collect a source into an empty folder: ({student: row}, the folder)."""

    def run(source, roster=None, **options):
        into = tmp_path / "submitted"
        rows = collect(source, course[1], into, roster or {}, **options).rows
        return {row.student: row for row in rows}, into

    return run


def packed(path, files):
    """A zip archive; values are contents, or (ZipInfo, contents)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(*(data if isinstance(data, tuple) else (name, data)))
    return path


def roster_file(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return read_roster(path, path.parent)


def link(name):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def test_folders_come_in_and_a_second_time_nothing_changes(course, take, tmp_path):
    hand_in(tmp_path / "from", "ada", notebook(course[1]))
    hand_in(tmp_path / "from", "bob", "{}", "ps01/" + FILE)
    hand_in(tmp_path / "from", "eve", "{}", "homework.ipynb")
    rows, into = take(tmp_path / "from")
    assert {name: row.state for name, row in rows.items()} == {"ada": "new", "bob": "new", "eve": "refused"}
    assert rows["eve"].why == f"no {FILE}; found homework.ipynb"
    assert (into / "bob" / "ps01" / FILE).read_text() == "{}"
    hand_in(tmp_path / "from", "bob", "{ }", "ps01/" + FILE)
    rows, _ = take(tmp_path / "from")
    assert {name: row.state for name, row in rows.items()} == {
        "ada": "unchanged",
        "bob": "replaced",
        "eve": "refused",
    }


@pytest.mark.parametrize(
    "path, student, file, order, note",
    [
        ("lovelaceada_1234_56789_ps01_tiny.ipynb", "lovelaceada_1234", "ps01_tiny.ipynb", (56789,), ""),
        (
            "lovelaceada_LATE_1234_56789_ps01_tiny-1.ipynb",
            "lovelaceada_1234",
            "ps01_tiny-1.ipynb",
            (56789,),
            "late, says Canvas",
        ),
        ("Ada Lovelace_4321_assignsubmission_file/ps01_tiny.ipynb", "Ada Lovelace_4321", FILE, (), ""),
        ("Ada Lovelace_4321_assignsubmission_file_/ps01_tiny.ipynb", "Ada Lovelace_4321", FILE, (), ""),
        ("Ada Lovelace_4321_assignsubmission_file_ps01_tiny.ipynb", "Ada Lovelace_4321", FILE, (), ""),
        (
            "Ada Lovelace_31_assignsubmission_file_Bob_32_assignsubmission_file_ps01_tiny.ipynb",
            "Ada Lovelace_31",
            "Bob_32_assignsubmission_file_ps01_tiny.ipynb",
            (),
            "",
        ),
        (
            "Ada Lovelace_4321_assignsubmission_onlinetext/onlinetext.html",
            "Ada Lovelace_4321",
            "onlinetext.html",
            (),
            "",
        ),
        (
            "Ada Lovelace_4321_assignsubmission_onlinetext_onlinetext.html",
            "Ada Lovelace_4321",
            "onlinetext.html",
            (),
            "",
        ),
        ("Default group_assignsubmission_file/ps01_tiny.ipynb", "Default group", FILE, (), ""),
        ("lovelaceada_LATE_1234_text.html", "lovelaceada_1234", "text.html", (0,), "late, says Canvas"),
        ("ada/ps01/ps01_tiny.ipynb", "ada", FILE, (), ""),
    ],
)
def test_the_names_that_canvas_and_moodle_give_are_read(path, student, file, order, note):
    for around in ("", "class"):
        claim, *rest = parse_name(f"class/{path}" if around else path, None, around)
        assert [str(claim), *rest] == [student, file, order, note]


ADAS = "Ada Lovelace_31_assignsubmission_file"
MALLORYS = "Mallory_9_assignsubmission_onlinetext"


@pytest.mark.parametrize(
    "hers, forged",
    [
        (f"ada/{FILE}", f"mallory/ada/{FILE}"),
        (f"ada/{FILE}", f"mallory/ada/ps01/{FILE}"),
        (f"ada/{FILE}", f"mallory/lovelaceada_31_99999_{FILE}"),
        (f"{ADAS}/{FILE}", f"{MALLORYS}/{ADAS}_{FILE}"),
        (f"{ADAS}/{FILE}", f"{MALLORYS}/Ada Lovelace_32_assignsubmission_file_{FILE}"),
    ],
)
@pytest.mark.parametrize("around", ["", "class/"])
def test_a_file_in_a_students_own_folder_is_nobody_elses_work(take, tmp_path, hers, forged, around):
    archive = packed(tmp_path / "class.zip", {f"{around}{hers}": "ada's", f"{around}{forged}": "mallory's"})
    people = ["id,first_name,last_name,email,lms_user_id", "ada,Ada,Lovelace,,31", "mallory,,Mallory,,9"]
    rows, into = take(archive, roster_file(tmp_path / "roster.csv", *people))
    assert (rows["ada"].state, (into / "ada" / "ps01" / FILE).read_text()) == ("new", "ada's")


@pytest.mark.parametrize(
    "paths, around",
    [
        (["class/ada/a", "class/bob/b", ".DS_Store"], "class"),
        (["ada/a", "bob/b"], ""),
        (["class/ada/a", "readme.txt"], ""),
        (["7_8_a"], ""),
        ([], ""),
    ],
)
def test_the_folder_around_a_whole_class_is_no_students(paths, around):
    assert top_folder(paths) == around


@pytest.mark.parametrize("file", [FILE, f"ps01/{FILE}"])
def test_the_only_students_folder_is_hers(take, tmp_path, file):
    assert "ada" in take(packed(tmp_path / "class.zip", {f"ada/{file}": "x"}))[0]


def test_a_canvas_archive_is_matched_by_the_persons_number_and_the_latest_upload_counts(take, tmp_path):
    archive = packed(
        tmp_path / "canvas.zip",
        {
            "lovelaceada_7_100_ps01_tiny.ipynb": "old",
            "lovelaceada_LATE_7_101_ps01_tiny-1.ipynb": "new",
            "grace_8_102_notes.txt": "no notebook",
            "mallory_9_103_ps01_tiny.ipynb": "not of this course",
            "anon_ab3fG_104_ps01_tiny.ipynb": "whose?",
        },
    )
    roster = roster_file(
        tmp_path / "canvas.csv",
        "Student,ID,SIS User ID,SIS Login ID,Section,ps01 (5)",
        "Points Possible,,,,,100",
        '"Lovelace, Ada",7,S7,ada,A,',
        '"Hopper, Grace",8,S8,grace,A,',
        '"Turing, Alan",10,S10,alan,A,',
    )
    rows, into = take(archive, roster)
    assert oct(into.stat().st_mode)[-3:] == "700"
    assert (into / "ada" / "ps01" / FILE).read_text() == "new"
    assert {name: (row.state, row.why) for name, row in rows.items()} == {
        "ada": ("new", "late, says Canvas"),
        "alan": ("nothing", "nothing handed in"),
        "(nobody)": ("refused", "graded anonymously, Canvas gave no name"),
        "grace": ("refused", f"no {FILE}; found grace_8_102_notes.txt"),
        "mallory_9": ("refused", "nobody in the roster has this number"),
    }


def test_a_moodle_archive_is_matched_by_name_and_two_of_one_name_are_refused_without_their_numbers(
    take, tmp_path
):
    archive = packed(
        tmp_path / "moodle.zip",
        {
            "Ada Lovelace_31_assignsubmission_file/ps01_tiny.ipynb": "ada's",
            "Jan Novák_32_assignsubmission_file/ps01_tiny.ipynb": "one",
            "Jan Novák_33_assignsubmission_file/ps01_tiny.ipynb": "other",
        },
    )
    people = ["id,first_name,last_name,email,lms_user_id", "ada,Ada,Lovelace,,"]
    rows, into = take(archive, roster_file(tmp_path / "a.csv", *people, "jan,Jan,Novák,,"))
    assert (into / "ada" / "ps01" / FILE).read_text() == "ada's"
    assert rows["jan"].why == "2 people of this name handed in: add their numbers to the roster"
    rows, into = take(
        archive, roster_file(tmp_path / "b.csv", *people, "j1,Jan,Novák,,32", "j2,Jan,Novák,,33")
    )
    assert [(into / name / "ps01" / FILE).read_text() for name in ("j1", "j2")] == ["one", "other"]


WORKSHEET = (
    "Identifier,Full name,Email address,Status,Grade",
    "Participant 31,Ada Lovelace,ada@x.org,Submitted,",
    "Participant 32,Zo\u00eb Müller,zoe@x.org,Submitted,",
    "Participant 17,Eve Moriarty,eve@x.org,Submitted,",
)


def test_who_takes_a_classmates_name_in_moodle_hands_in_nothing_for_or_against_them(take, tmp_path):
    """Many a Moodle lets people change their names; the participant's number they cannot change."""
    hers = {"Ada Lovelace_31_assignsubmission_file/ps01_tiny.ipynb": "hers"}
    eves = {"Ada  lovelace._17_assignsubmission_file/ps01_tiny.ipynb": "eve's"}
    roster = roster_file(tmp_path / "worksheet.csv", *WORKSHEET)
    rows, into = take(packed(tmp_path / "both.zip", hers | eves), roster)
    assert (into / "ada@x.org" / "ps01" / FILE).read_text() == "hers"
    told = "the number 17 is another's in the roster: a group, or a name that is taken"
    assert (rows["Ada  lovelace._17"].state, rows["Ada  lovelace._17"].why) == ("refused", told)
    rows, _ = take(packed(tmp_path / "eves.zip", eves), roster)
    assert rows["ada@x.org"].state == "nothing"


def test_what_was_typed_into_a_platform_is_its_students_and_no_notebook(take, tmp_path):
    moodles = {
        "Ada Lovelace_31_assignsubmission_file/ps01_tiny.ipynb": "ada's",
        "Ada Lovelace_31_assignsubmission_onlinetext/onlinetext.html": "see the file",
        # as macOS packs it
        "Zoe\u0308 Müller_32_assignsubmission_onlinetext/onlinetext.html": "see my laptop",
    }
    archive = packed(tmp_path / "moodle.zip", moodles)
    rows, _ = take(archive, roster_file(tmp_path / "w.csv", *WORKSHEET))
    assert {name: (row.state, row.why) for name, row in rows.items() if row.state != "nothing"} == {
        "ada@x.org": ("new", ""),
        "zoe@x.org": ("refused", f"no {FILE}; found onlinetext.html"),
    }
    archive = packed(tmp_path / "canvas.zip", {"mossbob_8_text.html": "see my laptop"})
    rows, _ = take(archive, roster_file(tmp_path / "r.csv", "id,lms_user_id", "bob,8"))
    assert (rows["bob"].state, rows["bob"].why) == ("refused", f"no {FILE}; found mossbob_8_text.html")


def test_moodles_anonymous_names_are_read_by_their_numbers_where_the_roster_has_them(take, tmp_path):
    archive = packed(tmp_path / "moodle.zip", {f"Participant_31_assignsubmission_file/{FILE}": "ada's"})
    rows, _ = take(archive, roster_file(tmp_path / "w.csv", *WORKSHEET))
    assert rows["ada@x.org"].state == "new"
    with pytest.raises(UserError, match="names nobody"):
        roster_file(tmp_path / "anonymous.csv", "Identifier,Status,Grade", "Participant 31,Submitted,")


def test_a_group_is_nobody_until_a_person_enters_who_is_in_it_and_its_number_is_no_participants(
    course, tmp_path
):
    """Team A has the number of Eve, who is in another team: neither work nor feedback is hers."""
    theirs = f"Team A_17_assignsubmission_file/{FILE}"
    archive = packed(tmp_path / "moodle.zip", {theirs: "x", theirs.replace(FILE, "plan.txt"): "y"})
    roster, into = roster_file(tmp_path / "w.csv", *WORKSHEET), tmp_path / "in"
    found = collect(archive, course[1], into, roster)
    assert (found.taken, len(found.left)) == (0, 2) and found.names
    found.names.write_text(f"file,student\n{theirs},ada@x.org; zoe@x.org\n")
    found = collect(archive, course[1], into, roster)
    assert {row.student for row in found.rows if row.state == "new"} == {"ada@x.org", "zoe@x.org"}
    assert (found.taken, len(found.left)) == (1, 1), "one file, though two people handed it in"
    assert (into / "ps01.places.csv").read_text() == "file,student\n"


def test_gradescopes_list_counts_where_gradescope_puts_it_and_every_file_beside_it_is_told(
    course, take, tmp_path
):
    top = "assignment_9_export/"
    about = """submission_1:
  :submitters:
  - {":name": Ada, ":sid": ada, ":email": ada@x.org}
  - {":name": Bob, ":sid": , ":email": bob@x.org}
  :created_at: 2026-03-02 10:00:00.000000000 Z
submission_2: {":submitters": []}
submission_3:
  :submitters: [{":name": Eve, ":sid": "", ":email": eve@x.org}]
  :created_at: 2026-03-02 09:00:00 +01:00
"""
    files = {f"{top}submission_{number}/{FILE}": "x" for number in (1, 2, 3)}
    files |= {f"{top}submission_metadata.yml": about, f"__MACOSX/{top}._submission_metadata.yml": "x"}
    into = tmp_path / "submitted"
    found = collect(packed(tmp_path / "class.zip", files), course[1], into, {})
    assert {row.student: row.state for row in found.rows} == {
        "(nobody)": "refused", "ada": "new", "bob@x.org": "new", "eve@x.org": "new",
    }  # fmt: skip
    assert dict(found.left)[f"{top}submission_metadata.yml"].startswith("Gradescope's own list of whose and")
    ten, eight = datetime(2026, 3, 2, 10), datetime(2026, 3, 2, 8)
    assert received_times(into / "ps01.received.csv") == {"ada": ten, "bob@x.org": ten, "eve@x.org": eight}
    people = roster_file(tmp_path / "r.csv", "id,email", "ada,a@y.org", "bob,bob@x.org", "zoe,eve@x.org")
    rows = collect(tmp_path / "class.zip", course[1], tmp_path / "named", people).rows
    assert {row.student for row in rows if row.state == "new"} == {"ada", "bob", "zoe"}
    rows, _ = take(packed(tmp_path / "b.zip", {f"ada/{FILE}": "x", "eve/submission_metadata.yml": about}))
    assert (rows["ada"].state, rows["eve"].state) == ("unchanged", "refused")


def test_zip_collects_folder_comes_in_by_its_pattern_and_a_bad_pattern_is_told(take, tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    packed(folder / "notebooks.zip", {f"ps01_{who}_attempt_2016-01-30_ps01_tiny.ipynb": who for who in "ab"})
    (folder / "ps01_a_attempt_2016-01-31_ps01_tiny.ipynb").write_text("later")
    pattern = r"ps01_(?P<student_id>\w+?)_attempt_(?P<timestamp>[0-9\-]+)_(?P<file_id>.+)"
    rows, into = take(folder, pattern=checked_pattern(pattern))
    assert {name: (into / name / "ps01" / FILE).read_text() for name in rows} == {"a": "later", "b": "b"}
    for wrong, why in ((r"(?P<student_id>.*)", r"it lacks (?P<file_id>...)"), ("(", "no regular expression")):
        with pytest.raises(UserError) as told:
            checked_pattern(wrong)
        assert why in str(told.value)


def test_a_notebook_of_another_name_is_taken_by_its_cells_and_nothing_else_is(course, take, tmp_path):
    own = json.dumps(notebook(course[1]))
    other = own.replace("launch_plan", "another_plan")
    files = {
        "ada/PS01_Tiny.ipynb": own,
        "bob/homework.ipynb": other,
        "eve/a.ipynb": own,
        "eve/b.ipynb": own,
        f"joe/{FILE}": "the file of this name counts, whatever is in it",
        "joe/better.ipynb": own,
        f"sue/{FILE}": "",
    }
    inner = packed(tmp_path / "inner.zip", {"work/mine.ipynb": own, "work/__MACOSX/._mine.ipynb": own})
    rows, into = take(packed(tmp_path / "class.zip", files | {"kim/w.zip": inner.read_bytes()}))
    assert (into / "ada" / "ps01" / FILE).read_text() == own
    by_cells = f"its name is not {FILE}; taken by its cells"
    assert {name: (row.state, row.why) for name, row in rows.items()} == {
        "ada": ("new", by_cells),
        "bob": ("refused", f"no {FILE}; found homework.ipynb"),
        "eve": ("refused", f"2 files that could be {FILE}: leave one"),
        "joe": ("new", ""),
        "kim": ("new", by_cells),
        "sue": ("new", "the file is empty"),
    }


def test_what_nobody_is_named_for_is_told_and_taken_when_a_person_enters_whose_it_is(course, tmp_path):
    files = {
        "lovelaceada_7_100_ps01_tiny.ipynb": "ada's",
        "ps01 grace final.ipynb": "grace's",
        "alan-ps01_tiny.ipynb": "alan's",
        "readme.txt": "",
        "__MACOSX/._x.ipynb": "",
    }
    archive, into = packed(tmp_path / "canvas.zip", files), tmp_path / "in"
    roster = roster_file(
        tmp_path / "r.csv", "id,lms_user_id", "ada,7", "grace,8", "alan,9", "ps01 grace final.ipynb,1"
    )
    found = collect(archive, course[1], into, roster)
    assert found.taken == 1 and {row.state for row in found.rows if row.student == "(nobody)"} == {"refused"}
    assert sorted(found.left) == [
        ("__MACOSX/._x.ipynb", "'__MACOSX' cannot be a student's folder"),
        ("alan-ps01_tiny.ipynb", "its name says no student"),
        ("ps01 grace final.ipynb", "its name says no student"),
        ("readme.txt", "its name says no student"),
    ]
    listed = "file,student\nalan-ps01_tiny.ipynb,{}\nps01 grace final.ipynb,{}\n"
    assert found.names and found.names.read_text() == listed.format("", "")
    found.names.write_text(listed.format("", "grace"))
    again = collect(archive, course[1], into, roster)
    assert {row.student: row.state for row in again.rows} == {
        "ada": "unchanged",
        "grace": "refused",
        "alan": "nothing",
        "ps01 grace final.ipynb": "nothing",
        "(nobody)": "refused",
    }, "its name is not the set's, and it has none of its cells"
    assert again.names == found.names and again.names.read_text() == listed.format("", "grace")
    packed(archive, files | {"ps01 grace final.ipynb": json.dumps(notebook(course[1]))})
    rows = {row.student: row.state for row in collect(archive, course[1], into, roster).rows}
    assert (rows["grace"], rows["(nobody)"]) == ("new", "refused")


def test_a_files_name_is_no_formula_in_the_list_and_is_found_there_again(course, tmp_path):
    """The names are the students' own, and the list is opened in a spreadsheet."""
    archive = packed(tmp_path / "a.zip", {"=cmd|x!A1.ipynb": json.dumps(notebook(course[1])), "x.txt": ""})
    found = collect(archive, course[1], tmp_path / "in", {})
    assert found.names and found.names.read_text() == "file,student\n'=cmd|x!A1.ipynb,\n"
    found.names.write_text("file,student\n'=cmd|x!A1.ipynb,ada\n")
    (row,) = collect(archive, course[1], tmp_path / "in", {}).rows
    assert (row.student, row.state) == ("ada", "new")


def test_who_is_late_without_a_time_is_entered_without_one_until_a_person_knows_it(take, tmp_path):
    archive = packed(tmp_path / "a.zip", {"ada_LATE_7_1_ps01_tiny.ipynb": "x", "eve_8_2_ps01_tiny.ipynb": ""})
    _, into = take(archive)
    times = into / "ps01.received.csv"
    assert times.read_text() == 'student,time,note\nada_7,,"late, says Canvas: enter the time"\n'
    assert received_times(times) == {}
    times.write_text("student,time\nada_7,2026-03-02T10:00:00Z\n")
    take(archive)
    assert received_times(times) == {"ada_7": datetime(2026, 3, 2, 10)}


def test_another_archive_of_the_set_takes_no_late_mark_away_and_says_who_is_there_already(take, tmp_path):
    """Canvas's archive, then another system's: whom Canvas marked late still waits for a time."""
    people = roster_file(
        tmp_path / "r.csv", "id,lms_user_id,first_name,last_name", "ada,7,Ada,B", "bob,8,B,C"
    )
    take(packed(tmp_path / "canvas.zip", {"ada_LATE_7_1_ps01_tiny.ipynb": "x"}), people)
    other = packed(tmp_path / "moodle.zip", {f"B C_31_assignsubmission_file/{FILE}": "y"})
    rows, into = take(other, people)
    assert (rows["ada"].state, rows["ada"].why) == (
        "nothing",
        "nothing here; what was collected before stays",
    )
    times = into / "ps01.received.csv"
    assert times.read_text() == 'student,time,note\nada,,"late, says Canvas: enter the time"\n'
    take(packed(tmp_path / "later.zip", {f"A A_30_assignsubmission_file/{FILE}": "z"}), people)
    assert "ada" in times.read_text(), "nobody's new work"
    take(packed(tmp_path / "hers.zip", {f"Ada B_30_assignsubmission_file/{FILE}": "z"}), people)
    assert times.read_text() == "student,time,note\n"


WORDS = st.text(st.sampled_from("abÄ é_-.1"), min_size=1, max_size=5)
NAMES = st.one_of(
    st.sampled_from([FILE, "ps01_tiny-1.ipynb", "w.zip", "note.txt", ".DS_Store", "other.ipynb"]),
    st.builds("{}_{}_{}_{}".format, WORDS, st.integers(1, 9), st.integers(1, 99), st.just(FILE)),
    st.builds("{}_LATE_{}_{}_{}".format, WORDS, st.integers(1, 9), st.integers(1, 99), WORDS),
    st.builds("{} {}_{}_assignsubmission_file/{}".format, WORDS, WORDS, st.integers(1, 9), st.just(FILE)),
    st.builds("anon_{}_{}_{}".format, st.just("x1"), st.integers(1, 9), st.just(FILE)),
    WORDS,
)
PLACES = st.builds("/".join, st.lists(WORDS, max_size=3).flatmap(lambda up: NAMES.map(lambda n: [*up, n])))


@pytest.mark.slow
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(PLACES, max_size=8), st.lists(PLACES, max_size=3, unique=True), st.booleans())
def test_no_file_of_an_archive_is_lost(course, tmp_path_factory, places, inner, old):
    """As many files as there are were taken or are told, each with a reason, whatever they are called.

    Names may stand twice. old: they are in UTF-8, and the archive does not say so.
    """
    folder = tmp_path_factory.mktemp("random")
    work, count = packed(folder / "w.zip", dict.fromkeys(inner, "y")).read_bytes(), 0
    for place in places:
        opened = place.endswith(".zip") and ".." not in place.split("/")
        count += len(inner) if opened and inner else 1
    with zipfile.ZipFile(folder / "class.zip", "w", zipfile.ZIP_DEFLATED) as archive, catch_warnings():
        simplefilter("ignore")  # zipfile's, of names that stand twice
        for place in places:
            archive.writestr(place, work if place.endswith(".zip") else "x")
    if old:
        data = bytearray((folder / "class.zip").read_bytes())
        for head, flags in ((b"PK\3\4", 7), (b"PK\1\2", 9)):
            for found in re.finditer(re.escape(head), bytes(data)):
                data[found.start() + flags] &= ~8
        (folder / "class.zip").write_bytes(data)
    found = collect(folder / "class.zip", course[1], folder / "in", {})
    assert found.taken + len(found.left) == count
    assert all(place and why for place, why in found.left)
    assert found.taken == len([*(folder / "in").glob("*/ps01/*")])


HOSTILE = {
    "path traversal": ({"../../etc/ps01_tiny.ipynb": "x"}, "leads out of the archive"),
    "an absolute path": ({"/root/ps01_tiny.ipynb": "x"}, "leads out of the archive"),
    "a backslash": ({"..\\eve\\ps01_tiny.ipynb": "x"}, "leads out of the archive"),
    "a link": ({"eve": (link(f"eve/{FILE}"), "/etc/passwd")}, "a link or special file"),
    "a hidden folder": ({f".git/{FILE}": "x"}, "cannot be a student's folder"),
    "signs that turn a line round": ({f"ev\u202ee/{FILE}": "x"}, "signs that cannot be shown"),
    "a folder's name of 300 bytes": ({f"{'e' * 300}/{FILE}": "x"}, "more than 255 bytes"),
    "a bomb": ({f"eve/{FILE}": bytes(30 * 2**20)}, "more than 20 MiB"),
    "two notebooks": ({f"eve/{FILE}": "x", "eve/ps01_tiny (1).ipynb": "y"}, "2 files that could be"),
    "a broken archive": ({"eve/work.zip": b"PK no archive"}, "an archive that cannot be read"),
}


@pytest.mark.parametrize("files, why", HOSTILE.values(), ids=HOSTILE)
def test_what_is_unfit_in_an_archive_is_refused_and_the_rest_comes_in(take, tmp_path, files, why):
    archive = packed(tmp_path / "class.zip", files | {f"ada/{FILE}": "fine"})
    before = {path for path in tmp_path.rglob("*")}
    rows, into = take(archive)
    refused = [row for row in rows.values() if row.state == "refused"]
    assert rows["ada"].state == "new"
    assert refused and all(why in row.why for row in refused)
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    written.discard(into / "ps01.names.csv")
    lists = {into / "ps01.received.csv", into / "ps01.places.csv"}
    assert written == {into / "ada" / "ps01" / FILE, *lists}


def test_a_bomb_inside_a_students_own_archive_is_refused(take, tmp_path):
    packed(tmp_path / "inner.zip", {FILE: bytes(30 * 2**20)})
    packed(tmp_path / "fine.zip", {f"work/{FILE}": "packed"})
    files = {
        "eve/a.zip": (tmp_path / "inner.zip").read_bytes(),
        "bob/a.zip": (tmp_path / "fine.zip").read_bytes(),
    }
    rows, into = take(packed(tmp_path / "class.zip", files))
    assert (rows["eve"].state, rows["bob"].state) == ("refused", "new")
    assert (into / "bob" / "ps01" / FILE).read_text() == "packed"


def test_a_locked_or_oddly_packed_member_is_refused(take, tmp_path):
    with zipfile.ZipFile(tmp_path / "class.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(f"eve/{FILE}", "x")
    rows, _ = take(tmp_path / "class.zip")
    assert "other than zip's usual one" in rows["eve"].why
    packed(tmp_path / "class.zip", {f"eve/{FILE}": "x"})
    data = bytearray((tmp_path / "class.zip").read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag that says: encrypted
    (tmp_path / "class.zip").write_bytes(data)
    assert "locked with a password" in take(tmp_path / "class.zip")[0]["eve"].why


def test_a_link_in_submitted_is_not_written_through(take, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "submitted").mkdir()
    (tmp_path / "submitted" / "eve").symlink_to(tmp_path / "elsewhere")
    rows, _ = take(packed(tmp_path / "class.zip", {f"eve/{FILE}": "x"}))
    assert "is a link: remove it" in rows["eve"].why
    assert not any((tmp_path / "elsewhere").iterdir())


def test_the_exchange_gives_the_latest_notebook_with_its_time(course, take, tmp_path):
    inbound = tmp_path / "inbound"
    for stamp, text in (("2026-03-01 10:00:00.000001 UTC", "old"), ("2026-03-02 09:30:00.5 UTC", "new")):
        home = inbound / f"ada+ps01+{stamp}+abcdef"
        hand_in(inbound, home.name, text, FILE)
        (home / "timestamp.txt").write_text(stamp)
    (inbound / "eve+ps01+2026-03-01 10:00:00 UTC").mkdir()
    (inbound / "eve+ps01+2026-03-01 10:00:00 UTC" / FILE).symlink_to("/etc/passwd")
    rows, into = take(inbound)
    assert (into / "ada" / "ps01" / FILE).read_text() == "new"
    assert "link to a place outside" in rows["eve"].why
    assert received_times(into / "ps01.received.csv") == {"ada": datetime(2026, 3, 2, 9, 30, 0, 500_000)}


def test_in_the_exchange_a_closed_folder_costs_its_owner_alone(take, tmp_path):
    for user in ("ada", "eve"):
        hand_in(tmp_path / "inbound", f"{user}+ps01+2026-03-01 10:00:00 UTC", "x", FILE)
    closed = tmp_path / "inbound" / "eve+ps01+2026-03-01 10:00:00 UTC"
    closed.chmod(0)
    try:
        with without_roots_eyes():
            rows, into = take(tmp_path / "inbound")
    finally:
        closed.chmod(0o755)
    assert (into / "ada" / "ps01" / FILE).exists()
    assert (rows["eve"].state, rows["eve"].why) == ("refused", "its folder cannot be read: Permission denied")


def test_in_the_exchange_a_folder_of_anothers_never_replaces_ones_own(take, tmp_path, monkeypatch):
    for user, stamp, text in (("ada", "2026-03-01", "ada's"), ("ada", "9999-12-31", "mallory's")):
        hand_in(tmp_path / "inbound", f"{user}+ps01+{stamp} 10:00:00 UTC", text, FILE)
    monkeypatch.setattr(type(tmp_path), "owner", lambda home: "mallory" if "9999" in home.name else "ada")
    rows, into = take(tmp_path / "inbound")
    assert (into / "ada" / "ps01" / FILE).read_text() == "ada's" and not rows["ada"].why


def commit(folder, date, **files):
    """A commit with these files at `date`; a value that begins with -> is a link."""
    folder.mkdir(exist_ok=True)
    subprocess.run([*GIT, "init", "-q", folder], check=True)
    for name, text in files.items():
        path = folder / name.replace("NB", FILE)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(text[2:]) if text.startswith("->") else path.write_text(text)
    times = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    subprocess.run([*GIT, "-C", folder, "add", "-A"], check=True)
    subprocess.run([*GIT, "-C", folder, "commit", "-qm", "x"], check=True, env=os.environ | times)
    head = subprocess.run(
        [*GIT, "-C", folder, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    return head.stdout.strip()


def listed(path, *rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("student", "repository", "commit", "time"), *rows])
    return path


@pytest.mark.slow
def test_repositories_are_read_at_the_commit_that_the_list_or_the_deadline_names(take, tmp_path):
    first = commit(tmp_path / "ada", "2026-03-01T10:00:00Z", NB="first")
    commit(tmp_path / "ada", "2026-03-05T10:00:00Z", NB="second")
    rows_of = {
        "latest": ("latest", tmp_path / "ada", "", ""),
        "pinned": ("pinned", tmp_path / "ada", first, "2026-03-01T10:00:09Z"),
        "gone": ("gone", tmp_path / "nowhere", "", ""),
    }
    rows, into = take(listed(tmp_path / "list.csv", *rows_of.values()), protocol="file")
    assert {name: (into / name / "ps01" / FILE).read_text() for name in ("latest", "pinned")} == {
        "latest": "second",
        "pinned": "first",
    }
    assert rows["gone"].state == "refused" and rows["gone"].why.startswith("git: fatal")
    assert received_times(into / "ps01.received.csv") == {"pinned": datetime(2026, 3, 1, 10, 0, 9)}
    early = listed(tmp_path / "list.csv", rows_of["latest"])
    rows, into = take(early, protocol="file", deadline=datetime(2026, 3, 2))
    assert (into / "latest" / "ps01" / FILE).read_text() == "first"
    assert "by its own date, which is the student's word" in rows["latest"].why
    rows, _ = take(early, protocol="file", deadline=datetime(2026, 1, 1))
    assert rows["latest"].why == "no commit is dated before the deadline"


@pytest.mark.slow
def test_nothing_of_a_repository_runs_and_no_link_or_large_file_store_is_followed(take, tmp_path):
    mark = tmp_path / "ran"
    attributes = {
        ".gitattributes": "*.ipynb filter=evil\n",
        ".gitmodules": '[submodule "s"]\n\tpath=s\n\turl=/etc\n',
    }
    commit(tmp_path / "filter", "2026-03-01T10:00:00Z", NB="x", **attributes)
    for hook in ("post-checkout", "post-merge", "reference-transaction", "post-upload-pack"):
        file = tmp_path / "filter" / ".git" / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\ntouch {mark}\n")
        file.chmod(0o755)
    subprocess.run(
        [*GIT, "-C", tmp_path / "filter", "config", "filter.evil.smudge", f"touch {mark}"], check=True
    )
    commit(tmp_path / "link", "2026-03-01T10:00:00Z", NB="->/etc/passwd")
    commit(tmp_path / "lfs", "2026-03-01T10:00:00Z", NB="version https://git-lfs.github.com/spec/v1\n")
    commit(tmp_path / "big", "2026-03-01T10:00:00Z", NB=" " * (21 * 2**20))
    names = ("filter", "link", "lfs", "big")
    rows, into = take(
        listed(tmp_path / "l.csv", *((one, tmp_path / one, "", "") for one in names)), protocol="file"
    )
    assert [rows[name].state for name in names] == ["new", "refused", "refused", "refused"]
    assert "a link" in rows["link"].why and "Git LFS" in rows["lfs"].why and "20 MiB" in rows["big"].why
    assert not mark.exists()


@pytest.mark.parametrize(
    "address",
    ["file:///work", "/work", "ext::sh -c id", "--upload-pack=id", "http://example.org/r", "ssh://h/r"],
)
def test_only_the_protocol_that_was_asked_for_is_fetched(take, tmp_path, address):
    rows, _ = take(listed(tmp_path / "list.csv", ("eve", address, "", "")))
    assert "does not begin with https://" in rows["eve"].why


CLASSROOM = (
    '"assignment_name","assignment_url","starter_code_url","github_username","roster_identifier",'
    '"student_repository_name","student_repository_url","submission_timestamp","points_awarded",'
    '"points_available"\n'
)


@pytest.mark.slow
def test_github_classrooms_table_is_a_list_of_repositories(take, tmp_path):
    """Whose each is: by the identifier that the course gave, else by the login."""
    people = roster_file(tmp_path / "r.csv", "id,email", "ada,ada@x.org", "bob-gh,b@x.org", "eve,e@x.org")
    known = {"ada": ("ada-gh", "ada@x.org"), "bob": ("bob-gh", "B"), "cy": ("cy-gh", "nobody@x.org")}
    table = CLASSROOM
    for name, (login, identifier) in known.items():
        commit(tmp_path / name, "2026-03-01T10:00:00Z", **{"ps01/NB": name})
        row = ("set 1", "a", "b", login, identifier, name, str(tmp_path / name), "2026-03-01 23:59:59 UTC")
        table += ",".join(f'"{cell}"' for cell in (*row, "74", "100")) + "\n"
    (tmp_path / "grades.csv").write_text(table)
    rows, into = take(tmp_path / "grades.csv", people, protocol="file")
    assert {name: row.state for name, row in rows.items()} == {
        "ada": "new", "bob-gh": "new", "nobody@x.org": "refused", "eve": "nothing",
    }  # fmt: skip
    assert set(received_times(into / "ps01.received.csv")) == {"ada", "bob-gh"}
    assert f"{tmp_path / 'ada'},ada\n" in (into / "ps01.places.csv").read_text()
    table = CLASSROOM + "1,2,3,a,,5,https://github.com/o/ps01-a,2026-03-01 23:59:59 UTC,8,9\n"
    (tmp_path / "grades.csv").write_text(table)
    for protocol, address in (("ssh", "ssh://git@"), ("https", "https://")):
        ((_, row),) = rows_of(tmp_path / "grades.csv", protocol)
        assert row["repository"] == f"{address}github.com/o/ps01-a" and row["student"] == "a"


def test_a_servers_words_do_not_steer_the_terminal(take, tmp_path, monkeypatch):
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nprintf 'remote: \\033]0;taken\\007\\342\\200\\256 gone\\n' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "list.csv").write_text("student,repository\neve,https://localhost/eve\n")
    assert take(tmp_path / "list.csv")[0]["eve"].why == "git: remote: \ufffd]0;taken\ufffd\ufffd gone"


def test_a_repository_cannot_name_a_program_where_local_ones_are_fetched(take, tmp_path):
    mark = tmp_path / "ran"
    addresses = (f"ext::sh -c touch% {mark}", f"--upload-pack=touch {mark}")
    rows = [(f"eve{number}", address, "", "") for number, address in enumerate(addresses)]
    found, _ = take(listed(tmp_path / "list.csv", *rows), protocol="file")
    assert {row.state for row in found.values()} == {"refused"} and not mark.exists()


def test_an_odd_student_in_the_list_or_a_bad_line_is_told(take, tmp_path):
    rows, _ = take(listed(tmp_path / "list.csv", ("../eve", "https://example.org/r", "", "")))
    assert "leads out of the folder" in next(iter(rows.values())).why
    for row in (
        ("ada", "https://example.org/r", "HEAD --all", ""),
        ("ada", "https://example.org/r", "", "noon"),
    ):
        with pytest.raises(UserError, match="line 2"):
            take(listed(tmp_path / "list.csv", row))


def test_a_roster_with_a_student_twice_or_without_ids_is_refused_with_the_line(tmp_path):
    with pytest.raises(UserError, match="line 3: 'ada' stands there twice"):
        roster_file(tmp_path / "r.csv", "id,email", "ada,a@b", "ada,c@d")
    with pytest.raises(UserError, match="the column id"):
        roster_file(tmp_path / "r.csv", "name,email", "ada,a@b")


def test_the_command_ends_with_1_where_somebody_was_refused_and_names_the_next_step(course, tmp_path):
    packed(tmp_path / "class.zip", {f"ada/{FILE}": "{}", f".x/{FILE}": "{}"})

    collected = course[0], "collect", "ps01"
    status, told, _ = command(*collected, "--from", tmp_path / "class.zip", "--into", tmp_path / "in")
    assert status == 1 and "1 new, 1 refused" in told and "next: autograder grade ps01\n" in told
    for words, why in (
        (("--from", tmp_path / "nowhere"), "there is no"),
        (("--from", tmp_path, "--deadline", "noon"), "'noon' is no time"),
        (("--from", tmp_path, "--protocol", "ext"), "none of https, ssh, file"),
        (("--from", tmp_path, "--pattern", "("), "no regular expression"),
    ):
        status, _, told = command(*collected, *words)
        assert status == 2 and why in told and told.count("\n") == 1
