"""Each wall is taken away alone, and the attack that it stops must then succeed.

In depth, because another wall stops the attack as well: a user id of its own and the filter (counts of a
user), the three before the network, and the namespaces of IPC and host name. Those tests take away the others
too, or look from inside. The product has no switch for any of it: wall_removal.py changes the jail's own
process before it builds its walls.
"""

import contextlib
import os
import socket
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import TESTS
from forked_commands import descendants
from test_boundary import submitted
from test_sandbox import inside
from wall_removal import (
    ONE_ID,
    Demolition,
    allowing,
    without_conditions,
    without_landlock,
    without_limit,
    without_namespace,
)

from autograder.judge.budget import Budget, Lost
from autograder.judge.process import NotStarted, Process
from autograder.sandbox import Limits, SelfSandbox, landlock, zygote
from autograder.sandbox.choose import problem_of
from autograder.sandbox.job import JailedJob
from autograder.sandbox.linux import MACHINE
from autograder.sandbox.messages import Cell, Executed

IN_JAIL = f"""
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, struct, sys, time
COLUMN = {0 if MACHINE == "x86_64" else 1}
libc = ctypes.CDLL(None, use_errno=True)

def call(numbers, *arguments):
    ctypes.set_errno(0)
    words = [value if isinstance(value, bytes) else ctypes.c_long(value) for value in arguments]
    result = libc.syscall(ctypes.c_long(numbers[COLUMN]), *words)
    return result if result >= 0 else -ctypes.get_errno()

def could(what):
    raise ValueError(f"could {{what}}")

def reaches(*tried):
    through = [name for name, result in tried if result not in (-errno.EPERM, -errno.ENOSYS)]
    if through:
        could(" and ".join(through))
"""
NOBODY = 2**22 + 1  # one more than the highest process id
# calls that the filter refuses, by what they would reach, with arguments that a kernel which looks at them
# finds wrong in another way than "not permitted": {group: {name: (numbers, arguments)}}
REFUSED = {
    "another view of the file system": {
        "open_tree": ((428, 428), (-1, 0, 0)),
        "statmount": ((457, 457), (0, 0, 0, 1)),
        "listmount": ((458, 458), (0, 0, 0, 1)),
        "open_tree_attr": ((467, 467), (-1, 0, 0, 0, 0)),
        "file_setattr": ((469, 469), (-1, 0, 0, 0, 0)),
        "name_to_handle_at": ((303, 264), (-1, 0, 0, 0, 0)),
    },
    "namespaces": {"unshare": ((272, 97), (1,)), "setns": ((308, 268), (-1, 0))},
    "other processes": {
        "ptrace": ((101, 117), (2, NOBODY, 0, 0)),
        "process_vm_readv": ((310, 270), (NOBODY, 0, 0, 0, 0, 0)),
        "pidfd_open": ((434, 434), (NOBODY, 0)),
    },
    "the kernel": {
        "io_uring_setup": ((425, 425), (0, 0)),
        "userfaultfd": ((323, 282), (0xFF,)),
        "bpf": ((321, 280), (9999, 0, 0)),
        "perf_event_open": ((298, 241), (0, 0, -1, -1, 0)),
    },
    "keys": {"keyctl": ((250, 219), (0, -3, 0))},
    "memory that no process's sum has": {
        "memfd_create": ((319, 279), (0, 0)),
        "shmget": ((29, 194), (0, 0, 0)),
        "msgget": ((68, 186), (1, 0)),
        "mlock": ((149, 228), (0, 0)),
        "io_setup": ((206, 0), (0, 0)),
    },
    "counts of a user's": {
        "pipe2": ((293, 59), (0, 0)),
        "epoll_create1": ((291, 20), (-1,)),
        "inotify_init1": ((294, 26), (-1,)),
        "sendmsg": ((46, 211), (-1, 0, 0)),
        "mknodat": ((259, 33), (-1, 0, 0o10600, 0)),
    },
    "counts of the machine's": {
        "sysinfo": ((99, 179), (0,)),
        "mincore": ((27, 232), (1, 1, 0)),
        "preadv2": ((327, 286), (-1, 0, 0, 0, 0, 0)),
        "fadvise64": ((221, 223), (-1, 0, 0, 0)),
    },
    "locks": {"flock": ((73, 32), (-1, 0))},
    "shares of the processors": {"sched_setaffinity": ((203, 122), (NOBODY, 0, 0))},
    "other ids": {"setuid": ((105, 146), (4242,))},
    "filters": {"seccomp": ((317, 277), (99, 0, 0)), "landlock": ((444, 444), (0, 0, 1))},
}


@dataclass(frozen=True)
class Wall:
    """code takes it away; attack, a cell, says what it could do. limits: of the job, where they matter."""

    name: str
    code: str
    attack: str
    limits: dict[str, int] = field(default_factory=dict)


def tries(group):
    """A cell that makes the calls of one group."""
    every = (f"({name!r}, call({numbers}, *{given}))" for name, (numbers, given) in group.items())
    return f"reaches({', '.join(every)})"


def lets_through(group):
    """Code that allows the calls of one group."""
    return allowing(*(numbers[MACHINE != "x86_64"] for numbers, _ in group.values()))


def from_linux(name, instead):
    """Code that puts another function in place of one of linux.py; `whole` is the old one."""
    return f"from autograder.sandbox import linux\nwhole = linux.{name}\nlinux.{name} = {instead}\n"


MANY_SOCKETS = """
kept = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        for _ in range(350):
            pair = socket.socketpair()
            pair[0].setblocking(False)
            try:
                while True:
                    pair[0].send(bytes(65536))
            except BlockingIOError:
                kept.append(pair)
        time.sleep(60)
"""
MANY_TABLES = """
CHUNK = 2 << 20  # one page of a page table reaches so far
block = mmap.mmap(-1, 120_000 * CHUNK, mmap.MAP_PRIVATE | 0x4000, mmap.PROT_READ)
block.madvise(15)  # MADV_NOHUGEPAGE
for place in range(120_000):
    block[place * CHUNK]
"""
MANY_MAPPINGS = """
size = 60_000 * 4096
libc.mmap.restype = ctypes.c_void_p
start = libc.mmap(None, ctypes.c_size_t(size), 0, 0x4022, -1, ctypes.c_long(0))
for place in range(0, size, 8192):
    libc.mprotect(ctypes.c_void_p(start + place), ctypes.c_size_t(4096), 1)
for _ in range(14):
    if os.fork() == 0:
        time.sleep(60)
"""
WITHOUT_A_FIRST_THREAD = """
import threading
def fill():
    blocks = []
    try:
        while True:
            blocks.append(b"x" * (1 << 20))
    except MemoryError:
        time.sleep(60)
for _ in range(4):
    if os.fork() == 0:
        threading.Thread(target=fill).start()
        call((60, 93), 0)  # exit: of this thread alone
"""
MANY_PAGES = """
for _ in range(4):
    if os.fork() == 0:
        blocks = []
        try:
            while True:
                blocks.append(b"x" * (1 << 20))
        except MemoryError:
            time.sleep(60)
"""
HELD = "from autograder.sandbox import held_memory\nheld_memory."
ONLY_FIRST_THREADS = """
import os, types
from autograder.sandbox import held_memory
def listed(path):
    return [path.split("/")[-2]] if path.endswith("/task") else os.listdir(path)
held_memory.os = types.SimpleNamespace(listdir=listed, path=os.path, statvfs=os.statvfs)
"""
FILES_IN_PROC = "from autograder.sandbox import view\nview.readable = lambda gpu: ['/']\n"
ALIVE = "\ntime.sleep(4)\ncould('hold it')"
SMALL = {"memory_mib": 600}

# name of a conditional call: an attack that its conditions stop
ARGUMENTS = {
    "fcntl": "fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), fcntl.F_GETLK, bytes(32)); could('see locks')",
    "mmap": "mmap.mmap(-1, 4096); could('share memory that outlives its mapping')",
    "socket": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); could('queue datagrams')",
    "socketpair": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); could('queue datagrams')",
    "futex": "could('wait') if call((202, 98), 0, 0, 0, 0, 0, 0) != -errno.EAGAIN else None",
    "getsockopt": "socket.socket(socket.AF_UNIX).getsockopt(1, 57, 8); could('count the sockets of others')",
    "prctl": "reaches(('change the filter', libc.prctl(4, 0, 0, 0, 0) or 1))",
    "ioctl": "reaches(('ask for a block size', call((16, 29), 0, 2, 0)))",
    "clone": """
child = call((56, 220), 0x10000000 | 17, 0, 0, 0, 0)
if child == 0:
    os._exit(0)
reaches(("make a user namespace", child))
""",
}
LIMITS = {
    "RLIMIT_DATA": "mmap.mmap(-1, 700 << 20, mmap.MAP_PRIVATE); could('allocate')",
    "RLIMIT_FSIZE": "open('sparse', 'wb').truncate((20 << 20) + 1); could('make a big file')",
    "RLIMIT_NOFILE": "[os.dup(0) for _ in range(300)]; could('open 300 files')",
    "RLIMIT_NPROC": "[os.fork() or time.sleep(60) for _ in range(40)]; could('start 40 processes')",
    "RLIMIT_SIGPENDING": """
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
for _ in range(300):
    if libc.sigqueue(os.getpid(), 40, None):
        raise OSError("the queue is full")
could("queue 300 signals")
""",
    "RLIMIT_CPU": "if resource.getrlimit(resource.RLIMIT_CPU)[0] < 0: could('compute without end')",
    "RLIMIT_CORE": "if resource.getrlimit(resource.RLIMIT_CORE)[1]: could('leave a core file')",
}
WALLS = [
    Wall(
        "seccomp",
        "from autograder.sandbox import seccomp\nseccomp.install = lambda gpu: None\n",
        tries(REFUSED["namespaces"]),
    ),
    *(Wall(f"seccomp: {name}", lets_through(group), tries(group)) for name, group in REFUSED.items()),
    *(
        Wall(f"seccomp: {name}'s arguments", without_conditions(name), attack)
        for name, attack in ARGUMENTS.items()
    ),
    *(
        Wall(
            name,
            without_limit(name),
            attack,
            {"memory_mib": 600, "file_mib": 20, "open_files": 200, "processes": 30},
        )
        for name, attack in LIMITS.items()
    ),
    Wall("Landlock", without_landlock(), "open('/proc/self/comm', 'w'); could('write its name')"),
    Wall(
        "user",
        from_linux("become", "lambda user: None"),
        "sets = (ctypes.c_uint32 * 6)()\n"
        "assert libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), sets) == 0\n"
        "if any(sets): could('keep capabilities')",
    ),
    Wall(
        "network namespace",
        without_namespace("CLONE_NEWNET"),
        """
try:
    socket.socket(socket.AF_UNIX).bind(chr(0) + '@ABSTRACT@')
except OSError as problem:
    if problem.errno == errno.EADDRINUSE:
        could("see the grader's sockets")
""",
    ),
    Wall(
        "view",
        "from autograder.sandbox import view\nvisible = view.visible\n"
        "view.visible = lambda gpu: [*visible(gpu), '@CANARY@']\n",
        "could('read ' + open('@CANARY@').read())",
    ),
    Wall(
        "covered tasks",
        "from autograder.sandbox import view\nview.covered = lambda: []\n",
        "import warplab\nif os.listdir(warplab.__path__[0] + '/tasks'): could('see the tasks')",
    ),
    Wall(
        "read-only libraries",
        from_linux("restrict_tree", "lambda *_, **__: None"),
        "if not os.statvfs(sys.prefix).f_flag & os.ST_RDONLY: could('write, if it owned them')",
    ),
    Wall(
        "no counts of the machine in /proc",
        from_linux("mount", "lambda *a: whole(*a[:4], '' if a[0] == 'proc' else a[4] if a[4:] else '')")
        + FILES_IN_PROC,
        "could('see ' + open('/proc/loadavg').read())",
    ),
    Wall("memory watch", f"{HELD}over = lambda *_: False\n", MANY_PAGES + ALIVE, SMALL),
    Wall("memory: page tables", f"{HELD}TABLES = ()\n", MANY_TABLES + ALIVE, {"memory_mib": 400}),
    Wall("memory: sockets", f"{HELD}SOCKET = 0\n", MANY_SOCKETS + ALIVE, {"memory_mib": 400}),
    Wall(
        "memory: mappings",
        f"{HELD}MAPPING = 0\n",
        MANY_MAPPINGS + ALIVE,
        {"memory_mib": 400},
    ),
    Wall(
        "memory: processes whose first thread has ended",
        ONLY_FIRST_THREADS,
        WITHOUT_A_FIRST_THREAD + ALIVE,
        SMALL,
    ),
]


@dataclass(frozen=True)
class Channel:
    """A way from one jail to another around the judge: cells of both; code opens it."""

    name: str
    code: str
    sender: str
    receiver: str


PIPES = Channel(
    "pipe buffers",
    lets_through({"pipe2": REFUSED["counts of a user's"]["pipe2"]}),
    """
pair = (ctypes.c_int * 2)()
for _ in range(3):
    if os.fork() == 0:
        while call((293, 59), ctypes.addressof(pair), 0) == 0:
            pass
        time.sleep(60)
time.sleep(1)
""",
    """
pair = (ctypes.c_int * 2)()
if call((293, 59), ctypes.addressof(pair), 0) == 0 and fcntl.fcntl(pair[0], 1032) < 65536:
    could("see how many pipes others have")
""",
)
IN_FLIGHT = Channel(
    "descriptors in flight",
    lets_through({"sendmsg": REFUSED["counts of a user's"]["sendmsg"]}),
    """
pair = socket.socketpair()
many = [os.dup(0) for _ in range(200)]
for _ in range(6):
    socket.send_fds(pair[0], [b"x"], many)
""",
    """
pair = socket.socketpair()
try:
    socket.send_fds(pair[0], [b"x"], [0])
except PermissionError:
    pass
except OSError as problem:
    could(f"see how many descriptors others have under way: {problem}")
""",
)
IN_A_LIBRARY = """
door = os.open(os.path.join(os.path.dirname(os.__file__), "turtle.py"), os.O_RDONLY)
size = os.fstat(door).st_size
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_long] * 5]
place = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_PRIVATE, door, 0)
"""
CHANNELS = [
    Channel(
        "a futex in a library",
        without_conditions("futex"),
        IN_A_LIBRARY
        + """
import threading

def wake():
    while True:
        call((202, 98), place, 1, 1000, 0, 0, 0)
        time.sleep(0.001)

threading.Thread(target=wake, daemon=True).start()
""",
        IN_A_LIBRARY
        + """
expected = ctypes.c_int.from_address(place).value
for wait, until in ((0, 3), (9, int(time.monotonic()) + 6)):  # FUTEX_WAIT; FUTEX_WAIT_BITSET, by the clock
    if call((202, 98), place, wait, expected, struct.pack("qq", until, 0), 0, 0xFFFFFFFF) == 0:
        could("be woken by another jail")
""",
    ),
    Channel(
        "the number of an eventfd",
        FILES_IN_PROC,
        "held = [os.eventfd(0) for _ in range(900)]",
        """
lines = open(f"/proc/self/fdinfo/{os.eventfd(0)}").read().split("eventfd-id:")[1:]
if int(lines[0].split()[0]) > 900:
    could("count the eventfds of others")
""",
    ),
    Channel(
        "who has mapped a library's page",
        FILES_IN_PROC,
        IN_A_LIBRARY + "ctypes.c_ubyte.from_address(place).value",
        IN_A_LIBRARY
        + """
ctypes.c_ubyte.from_address(place).value
pages = os.open("/proc/self/pagemap", os.O_RDONLY)
if not struct.unpack("Q", os.pread(pages, 8, place // mmap.PAGESIZE * 8))[0] >> 56 & 1:
    could("see that another jail has mapped it")
""",
    ),
    Channel(
        "how many processes there were",
        without_conditions("getsockopt"),
        "",
        "pair = socket.socketpair(); could(f'see {os.fstat(pair[0].getsockopt(1, 77)).st_ino}')",
    ),
    Channel(
        "locks on library files",
        without_conditions("fcntl"),
        """
door = os.open(os.__file__, os.O_RDONLY)
fcntl.fcntl(door, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 4242, 1, 0))
""",
        """
door = os.open(os.__file__, os.O_RDONLY)
asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1 << 40, 0)
kind, _, start, *_ = struct.unpack("hhqqi4x", fcntl.fcntl(door, fcntl.F_GETLK, asked))
if kind != fcntl.F_UNLCK:
    could(f"read {start}")
""",
    ),
    Channel(
        "whole locks on library files",
        lets_through(REFUSED["locks"]),
        "door = os.open(os.__file__, os.O_RDONLY); fcntl.flock(door, fcntl.LOCK_EX)",
        """
try:
    fcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)
except BlockingIOError:
    could("see that another jail holds a lock")
""",
    ),
    Channel(
        "flags of a shared open file",
        "from autograder.sandbox import jail\njail.own_files = lambda: None\n",
        "fcntl.fcntl(0, fcntl.F_SETFL, os.O_NONBLOCK)",
        "if fcntl.fcntl(0, fcntl.F_GETFL) & os.O_NONBLOCK: could('read a flag that another jail has set')",
    ),
]
NAMESPACES = {
    "user": "CLONE_NEWUSER",
    "mnt": "CLONE_NEWNS",
    "pid": "CLONE_NEWPID",
    "net": "CLONE_NEWNET",
    "ipc": "CLONE_NEWIPC",
    "uts": "CLONE_NEWUTS",
    "cgroup": "CLONE_NEWCGROUP",
}
# each of the three keeps a jail from the network when the other two are gone
WITHOUT_NETWORK_WALLS = {
    "namespace": without_namespace("CLONE_NEWNET"),
    "filter": without_conditions("socket"),
    "Landlock": without_landlock(),
}
CONNECT = "socket.create_connection(('127.0.0.1', {port}), 2); could('reach the grader by TCP')"


@pytest.fixture(scope="module")
def demolition():
    if problem := problem_of():
        pytest.skip(f"{SelfSandbox.name} does not work here: {problem}")
    with pytest.MonkeyPatch.context() as patch:
        yield Demolition(patch)
    from autograder.sandbox.forked import PARENT

    PARENT.stop()  # the next one is a whole one


@pytest.fixture(scope="module")
def canary():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "canary")
        path.write_text("a secret")
        path.chmod(0o644)
        yield str(path)


@pytest.fixture(scope="module")
def abstract():
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0walls-{os.getpid()}")
        listener.listen()
        yield f"walls-{os.getpid()}"


def came_of(source, **limits):
    """What a cell says that it could do, how its process ended if that was no wish of its own, or ""."""
    try:
        told = inside(SelfSandbox(), IN_JAIL + source, 30.0, **limits) or ""
    except Lost as problem:
        told = str(problem)
    return told if told.startswith("ValueError: could") or "killed" in told else ""


@pytest.mark.sampled(8)
@pytest.mark.slow
@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall.name)
def test_the_loss_of_one_wall_is_noticed(demolition, canary, abstract, wall):
    attack, code = (
        text.replace("@CANARY@", canary).replace("@ABSTRACT@", abstract) for text in (wall.attack, wall.code)
    )
    held = came_of(attack, **wall.limits)
    assert "could" not in held and ("killed (memory)" in held) == wall.name.startswith("memory")
    with demolition.of(code):
        assert "could" in came_of(attack, **wall.limits)


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", NAMESPACES)
def test_without_one_namespace_a_jail_does_not_start_or_can_be_told(demolition, kind):
    source = (
        f"if os.readlink('/proc/self/ns/{kind}') == {os.readlink(f'/proc/self/ns/{kind}')!r}: could('share')"
    )
    assert came_of(source) == ""
    with demolition.of(without_namespace(NAMESPACES[kind])):
        if kind in ("user", "mnt", "pid"):
            with pytest.raises(NotStarted, match=r"namespace|view"):
                came_of(source)
        else:
            assert "could share" in came_of(source)


def heard(channel):
    """What came of the receiver's cell while the sender's process was there."""
    with Process(SelfSandbox(), "student", Budget(Limits())) as sender:
        sender.begin_step(30)
        sender.ask(Cell("cell", IN_JAIL + channel.sender), (Executed,))
        return came_of(channel.receiver)


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_one_jail_does_not_hear_another(demolition, channel):
    assert heard(channel) == ""
    with demolition.of(channel.code):
        assert "could" in heard(channel)


@pytest.mark.slow
@pytest.mark.parametrize("channel", [PIPES, IN_FLIGHT], ids=lambda channel: channel.name)
def test_two_walls_keep_the_counts_of_a_user_from_telling(demolition, channel):
    """In depth where root grades: the filter refuses the call, and each jail's user is another one."""
    assert heard(channel) == ""
    with demolition.of(ONE_ID):
        assert heard(channel) == ""
    with demolition.of(channel.code):
        assert ("could" in heard(channel)) == (os.geteuid() != 0)
    with demolition.of(ONE_ID + channel.code):
        assert "could" in heard(channel)


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("left", [*WITHOUT_NETWORK_WALLS, None])
def test_each_wall_before_the_network_holds_alone(demolition, left):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        source = CONNECT.format(port=listener.getsockname()[1])
        with demolition.of("".join(code for name, code in WITHOUT_NETWORK_WALLS.items() if name != left)):
            assert ("could" in came_of(source)) == (left is None)


@pytest.mark.slow
def test_where_there_is_a_gpu_its_driver_names_its_threads_and_nobody_else_s(demolition):
    """cuInit opens that file of /proc with these flags, and ends with CUDA_ERROR_OPERATING_SYSTEM without."""
    source = """
import threading
task = "/proc/self/task"
stays = threading.Event()
thread = threading.Thread(target=stays.wait)
thread.start()
def names(path):
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    except OSError as problem:
        return os.strerror(problem.errno)
    return os.write(file, b"driver")
own, kernel = f"{task}/{thread.native_id}/comm", "/proc/sys/kernel/hostname"
tried = {"own": own, "other": "/proc/1/comm", "kernel": kernel}
told = {what: names(path) for what, path in tried.items()}
stays.set()
could(told)
"""
    assert "'own': 'Permission denied'" in came_of(source) or not landlock.abi()
    with demolition.of("from autograder.sandbox import view\nview.has_gpu = lambda gpu: True\n"):
        told = came_of(source)
    assert "'own': 6" in told and told.count("Permission denied") == 2, told


GUARDS = {
    "cheat_engines_own_instruction": "parser.PSEUDO_OPCODES = (' ',)",
    # in depth: the engine's own names are refused as well, and no other part of a name reaches the program
    "cheat_python_in_ptx": "parser.PSEUDO_OPCODES, parser._HEAD = (' ',), re.compile(r'[^ ]+')",
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", GUARDS)
def test_without_the_parsers_guard_an_attack_on_it_gets_points(demolition, attack):
    path = TESTS / "corpus/boundary/example/axpy" / f"{attack}.py"
    with demolition.of(f"import re\nfrom warplab.simt.ptx import parser\n{GUARDS[attack]}\n"):
        _, reports, run = submitted(path, SelfSandbox())
    assert reports["example/axpy"].score > 0, run.outcomes["example/axpy"][0].error


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's jails have that user's id outside")
def test_each_running_job_has_an_id_of_its_own(demolition):
    def ids_outside():
        return {
            os.stat(f"/proc/{pid}").st_uid
            for pid in descendants(os.getpid())
            if Path(f"/proc/{pid}").exists()
        }

    with contextlib.ExitStack() as stack:
        for _ in range(2):
            process = stack.enter_context(Process(SelfSandbox(), "student", Budget(Limits())))
            process.begin_step(30)
        used = ids_outside() - {0}
        assert len(used) == 2 and used <= set(zygote.host_ids())
    assert ids_outside() == {0}


def test_an_id_is_lent_once_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(zygote, "IDS_IN_USE", str(tmp_path / "ids"))
    monkeypatch.setattr(zygote.os, "geteuid", lambda: 0)
    job = JailedJob("", "own", Limits(), "", {}, False)
    with zygote.lent_id(job) as first, zygote.lent_id(job) as second:
        assert first != second and {first, second} <= set(zygote.host_ids())
    with zygote.lent_id(job) as again:
        assert again == first
