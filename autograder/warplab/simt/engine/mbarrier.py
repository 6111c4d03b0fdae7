"""``mbarrier``: barriers that are objects in shared memory, at which threads arrive and for which they wait.

An object has a phase, from 0 on, and counts: how many arrivals each phase expects, and how many are pending.
With the last of these the phase is complete, and the next begins (PTX ISA, "mbarrier"). Whoever arrives gets
a token, which says of which object and which phase it is and how many arrivals were pending. A wait does not
stop a thread: it tells whether the phase is complete, and programs ask again, so the machine lets others run
meanwhile. What an asynchronous copy signals is done at once, as the engine copies at once; that its data are
there for whoever has waited, and for nobody else, is known in ``knowledge`` and held in ``async_copies``.

What the manual leaves undefined is an error here: an object that nobody has initialised or whose count is out
of range, one that is initialised twice, more arrivals than a phase expects, a phase for which nobody waited
before the next arrival, the token of another object or of an earlier phase, and a plain access to the object.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.async_copies import copies
from warplab.simt.engine.generic_addresses import in_several_spaces, resolve
from warplab.simt.engine.indices import array_at
from warplab.simt.engine.knowledge import Knowledge
from warplab.simt.engine.movement import space_of
from warplab.simt.errors import BarrierMisuse, NoProgress, SharedRace
from warplab.simt.observer import Observer

SIZE = 8  # bytes of an object, and what its address is a multiple of
MOST = (1 << 20) - 1  # of any count
IN_VAIN = 1 << 12  # answers of "not yet" in a row, while nothing else goes to memory

# A token: a mark that it is one, whether its arrival was not to complete the phase, the phase, the object's
# number in its block, the pending arrivals before.
MARK, INCOMPLETE = np.uint64(1 << 63), np.uint64(1 << 62)
PHASE_SHIFT, WORD_SHIFT = np.uint64(35), np.uint64(20)
PHASE_MASK, WORD_MASK, PENDING_MASK = np.uint64((1 << 27) - 1), np.uint64((1 << 15) - 1), np.uint64(MOST)
ONE = np.ones(1, np.int64)


def mbarrier(code, instr):
    """``mbarrier.init``, ``inval``, ``arrive``, ``arrive_drop``, ``test_wait``, ``try_wait`` and
    ``pending_count``; what counts bytes (``expect_tx``, ``complete_tx``) is refused.
    """
    form, operands = instr.mods[0], instr.operands
    if form == "pending_count":
        site = code.site(instr)
        expression = f"mbarrier.pending_count(memory, group, {site}, {code.use(operands[1], 'u8')})"
        code.define(operands[0], expression, "u4")
        return
    if form in ("init", "inval"):
        count = f", {code.use(operands[1], 'u4')}" if form == "init" else ""
        code.emit(f"mbarrier.{form}({place(code, instr, operands[0])}{count})")
        return
    orders = "relaxed" not in instr.mods
    where = place(code, instr, operands[1])
    if form in ("arrive", "arrive_drop"):
        given = code.use(operands[2], "u4") if len(operands) > 2 else "mbarrier.ONE"
        how = f"{form == 'arrive_drop'}, {'noComplete' in instr.mods}, {orders}"
        code.define(operands[0], f"mbarrier.arrive({where}, {given}, {how})", "u8")
    elif form in ("test_wait", "try_wait"):
        parity = "parity" in instr.mods
        sought = code.use(operands[2], "u4" if parity else "u8")
        code.define(operands[0], f"mbarrier.wait({where}, {sought}, {parity}, {orders})", "?")
    else:
        raise code.unsupported(instr)


def place(code, instr, address) -> str:
    """The arguments with which the functions below find the objects."""
    base, offset = code.base_and_offset(address)
    return f"memory, group, {code.site(instr)}, {space_of(instr)!r}, {base}, {offset}"


class Mbarriers(Observer):
    """The objects of a chunk of blocks, by the words of its shared memory. Observer: refuses plain accesses
    to a live object. The first ``mbarrier.init`` adds it to the machine's observers.
    """

    def __init__(self):
        self.started = False

    def start(self, machine):
        self.started = True
        words = machine.shared.size // SIZE
        self.live = np.zeros(words, bool)
        self.expected, self.pending, self.phase = np.zeros((3, words), np.int64)
        self.waited = np.zeros(words, bool)  # somebody, for the phase before this one
        self.maker, self.made_at, self.made_by = np.zeros((3, words), np.int64)  # lane, moment, site
        self.number = np.zeros(words, np.int64)
        self.numbers = 0
        self.in_vain = 0
        self.knowledge = Knowledge(machine)

    def phases(self, words: np.ndarray, back: int = 0) -> np.ndarray:
        """Numbers of the objects' phases, this one or the one before: an object has two, in turn."""
        return 2 * self.number[words] + (self.phase[words] - back & 1)

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if not self.started:
            return
        if what != "read":
            self.in_vain = 0
        if space != "shared":
            return
        first = access.offset + offset
        for part in range(0, max(width, 1), SIZE):
            hit = self.live[first + part >> 3]
            if hit.any():
                i = int(np.flatnonzero(hit)[0])
                lane = int(group.lanes[i if hit.size > 1 else 0])
                does = "reads" if what == "read" else "writes to"
                raise _misuse(
                    machine,
                    lane,
                    site,
                    f"{does} the mbarrier {self.name(machine, int((first + part)[i] >> 3))} as data",
                    "an index that reaches the barrier; its memory may be used again after mbarrier.inval",
                )

    def name(self, machine, word: int) -> str:
        program, byte = machine.program, word * SIZE % machine.shared_stride
        array = array_at(program.shared_arrays, byte)
        name = array.name if array and array.size == SIZE and array.name else program.shared_place(byte, SIZE)
        if not self.live[word]:
            return name
        return f"{name} (initialised in {program.line_of_site(int(self.made_by[word]))})"

    def warp_barrier(self, machine, group):
        if self.started:
            self.knowledge.join(group.lanes, group.warp)

    def barrier(self, machine, block):
        if self.started:
            self.in_vain = 0
            self.knowledge.join(machine.all_lanes, machine.block_of_lane)

    def met(self, machine, lanes, together):
        if self.started:
            self.in_vain = 0
            self.knowledge.join(lanes, together)

    def fence(self, machine, group, wide):
        if self.started:
            self.knowledge.fenced = True

    def done(self, machine):
        self.started = False


def objects(memory) -> Mbarriers:
    """The machine's mbarriers; the first that asks for them adds them to its observers."""
    found = next((o for o in memory.observers if isinstance(o, Mbarriers)), None)
    if found is None:
        found = Mbarriers()
        memory.observers.append(found)
    if not found.started:
        found.start(memory.machine)
    return found


def init(memory, group, site, space, base, offset, count):
    machine, words = memory.machine, _words(memory, group, site, space, base, offset)
    found = objects(memory)
    count = np.broadcast_to(count, words.shape).astype(np.int64)
    if (bad := (count < 1) | (count > MOST)).any():
        i = int(np.flatnonzero(bad)[0])
        _refuse(
            found,
            machine,
            group,
            site,
            words,
            i,
            f"initialises {{}} for {count[i]:,} arrivals",
            f"the count, which is 1 to {MOST:,}",
        )
    again = found.live[words] | (_turn(words) > 0)
    if again.any():
        i = int(np.flatnonzero(again)[0])
        _refuse(
            found,
            machine,
            group,
            site,
            words,
            i,
            "initialises {} again",
            "let one thread initialise it, once; mbarrier.inval ends its life",
        )
    found.live[words] = True
    found.expected[words] = found.pending[words] = count
    found.phase[words], found.waited[words] = 0, True
    found.maker[words], found.made_at[words] = group.lanes, found.knowledge.now
    found.made_by[words] = site
    found.number[words] = found.numbers + np.arange(words.size)
    found.numbers += words.size
    found.knowledge.now += 1
    found.knowledge.opened(np.concatenate([found.phases(words), found.phases(words, back=1)]))
    for o in memory.observers:
        o.published(machine, group, found.knowledge)


def inval(memory, group, site, space, base, offset):
    found, words = _live(memory, group, site, space, base, offset, "invalidates {}")
    found.live[words] = False


def arrive(memory, group, site, space, base, offset, count, drops: bool, incomplete: bool, orders: bool):
    """The tokens. ``incomplete``: the arrival must not complete the phase."""
    found, words = _live(memory, group, site, space, base, offset, "arrives at {}")
    machine = memory.machine
    count = np.broadcast_to(count, words.shape).astype(np.int64)
    if (count < 1).any():
        i = int(np.flatnonzero(count < 1)[0])
        _refuse(found, machine, group, site, words, i, "arrives at {} with the count 0", "the count")
    before = found.pending[words] - _before(words, count)
    left = before - count
    _arrivals(found, machine, group, site, words, left, incomplete)
    phase = found.phase[words]
    if orders:
        found.knowledge.publish(group.lanes, found.phases(words))
        for o in memory.observers:
            o.published(machine, group, found.knowledge)
    if drops:
        np.subtract.at(found.expected, words, count)
    _signal(found, words, count)
    token = MARK | (INCOMPLETE if incomplete else np.uint64(0)) | before.astype(np.uint64)
    token |= (words * SIZE % machine.shared_stride >> 3).astype(np.uint64) << WORD_SHIFT
    return token | (phase.astype(np.uint64) & PHASE_MASK) << PHASE_SHIFT


def track(memory, group, site, space, base, offset, counted: bool):
    """``cp.async.mbarrier.arrive``: the copies that each lane has begun arrive when they are there.

    counted: this arrival is among those that the phase expects (``.noinc``); else it is added and made.
    """
    found, words = _live(memory, group, site, space, base, offset, "lets copies arrive at {}")
    machine, one = memory.machine, np.ones(words.shape, np.int64)
    if counted:
        _arrivals(found, machine, group, site, words, found.pending[words] - _before(words, one) - 1, False)
    elif (found.pending[words] >= MOST).any():
        i = int(np.flatnonzero(found.pending[words] >= MOST)[0])
        _refuse(
            found,
            machine,
            group,
            site,
            words,
            i,
            f"makes {{}} expect more than {MOST:,} arrivals",
            "its count",
        )
    copies(memory)
    found.knowledge.publish_copies(group.lanes, found.phases(words))
    for o in memory.observers:
        o.published(machine, group, found.knowledge)
    if counted:
        _signal(found, words, one)


def wait(memory, group, site, space, base, offset, sought, parity: bool, orders: bool):
    """Whether the phase is complete, by lane. sought: its token, or with ``parity`` its lowest bit."""
    found, words = _live(memory, group, site, space, base, offset, "waits for {}")
    machine, now = memory.machine, found.phase[words]
    sought = np.broadcast_to(sought, words.shape)
    if parity:
        if (sought > 1).any():
            i = int(np.flatnonzero(sought > 1)[0])
            _refuse(
                found,
                machine,
                group,
                site,
                words,
                i,
                f"waits for {{}} with the parity {sought[i]}",
                "the parity of a phase is 0 or 1",
            )
        complete = (now & 1) != sought
    else:
        complete = _by_token(found, machine, group, site, words, sought)
    if complete.any():
        found.in_vain = 0
        lanes, there = group.lanes[complete], words[complete]
        found.waited[there] = True
        if orders:
            found.knowledge.take_over(lanes, found.phases(there, back=1))
            part = group if complete.all() else group.split(complete, frozenset())
            for o in memory.observers:
                o.taken_over(machine, part, found.knowledge)
    else:
        found.in_vain += 1
        machine.waits_in_vain = True
        if found.in_vain > IN_VAIN:
            _never(found, machine, group, site, int(words[0]))
    return complete


def _by_token(found, machine, group, site, words, token):
    of_this = (token & MARK) > 0
    of_this &= (token >> WORD_SHIFT & WORD_MASK) == (words * SIZE % machine.shared_stride >> 3).astype(
        np.uint64
    )
    if not of_this.all():
        i = int(np.flatnonzero(~of_this)[0])
        _refuse(
            found,
            machine,
            group,
            site,
            words,
            i,
            "waits for {} with a token that it did not give",
            "which barrier the token comes from: what arrive() of the same barrier returned",
        )
    phase = (token >> PHASE_SHIFT & PHASE_MASK).astype(np.int64)
    late = found.phase[words] - phase > 1
    if late.any():
        i = int(np.flatnonzero(late)[0])
        _refuse(
            found,
            machine,
            group,
            site,
            words,
            i,
            f"waits for phase {phase[i]} of {{}}, which is in phase {found.phase[words][i]} by now",
            "a token is good until the phase after its own is complete: the number of threads that the "
            "barrier was initialised for, and who arrives without having waited",
        )
    return found.phase[words] > phase


def pending_count(memory, group, site, token):
    """The pending arrivals before the one that gave the token."""
    bad = (token & (MARK | INCOMPLETE)) != (MARK | INCOMPLETE)
    if bad.any():
        lane = int(group.lanes[np.flatnonzero(bad)[0] if bad.size > 1 else 0])
        raise _misuse(
            memory.machine,
            lane,
            site,
            "asks for the pending count of what is no token of an arrive.noComplete",
            "which instruction the state comes from",
        )
    return (token & PENDING_MASK).astype(np.uint32)


def _words(memory, group, site, space, base, offset) -> np.ndarray:
    """The word of the chunk's shared memory that each lane names."""
    machine = memory.machine
    if space == "generic":
        space, base = ("", base) if in_several_spaces(base) else resolve(base)
        if space != "shared":
            raise _misuse(
                machine,
                int(group.lanes[0]),
                site,
                "uses an mbarrier outside shared memory",
                "where the barrier is declared: __shared__",
            )
    access = memory.prepare(group, "shared", base)
    at, size = access.within + offset, machine.shared_size
    if (at < 0).any() or (at + SIZE > size).any():
        memory.fault(group, site, access, offset, SIZE, size, "shared", "write")
    if (at % SIZE).any():
        memory.misaligned(group, site, access, offset, SIZE, "shared", "write")
    return np.broadcast_to(access.offset + offset >> 3, (group.size,))


def _live(memory, group, site, space, base, offset, does: str) -> tuple[Mbarriers, np.ndarray]:
    """The objects that the lanes name, which must be initialised, and that with an order."""
    machine, words = memory.machine, _words(memory, group, site, space, base, offset)
    found = objects(memory)
    dead = ~found.live[words]
    if dead.any():
        i = int(np.flatnonzero(dead)[0])
        _refuse(
            found,
            machine,
            group,
            site,
            words,
            i,
            f"{does}, which is no initialised mbarrier",
            "init() by one thread and a __syncthreads() before the first use; none after inval",
        )
    maker = found.maker[words]
    unknown = ~found.knowledge.before(group.lanes, maker, found.made_at[words])
    if unknown.any() and not found.knowledge.fenced:
        i = int(np.flatnonzero(unknown)[0])
        program, thread = machine.program, machine.thread_name
        raise SharedRace(
            f"{thread(int(group.lanes[i]))} {does.format(found.name(machine, int(words[i])))}, and nothing "
            f"puts that after its initialisation by {thread(int(maker[i]))}",
            kernel=program.name,
            where=program.line_of_site(site),
            hint="a __syncthreads() between the initialisation of a barrier and its first use",
        )
    return found, words


def _turn(words: np.ndarray) -> np.ndarray:
    """How many lanes before each name the same object."""
    return _before(words, np.ones(words.shape, np.int64))


def _before(words: np.ndarray, count: np.ndarray) -> np.ndarray:
    """How much the lanes before each add to the same object."""
    order = np.argsort(words, kind="stable")
    ordered, sums = words[order], np.cumsum(count[order])
    new = np.r_[True, ordered[1:] != ordered[:-1]]
    out = np.empty(words.size, np.int64)
    before = sums - count[order]
    out[order] = before - before[new][np.cumsum(new) - 1]
    return out


def _arrivals(found, machine, group, site, words, left, incomplete: bool) -> None:
    """Refuse arrivals that a phase does not allow; ``left`` are pending after each."""
    if (left < 0).any():
        i = int(np.flatnonzero(left < 0)[0])
        expected = int(found.expected[words[i]])
        _refuse(
            found,
            machine,
            group,
            site,
            words,
            i,
            f"arrives at {{}} in phase {found.phase[words[i]]}, for which all of its {expected:,} arrivals "
            "are made",
            "the number of threads that the barrier was initialised for, and whether each waits "
            "for a phase before it arrives in the next",
        )
    if not found.waited[words].all():
        i = int(np.flatnonzero(~found.waited[words])[0])
        phase = int(found.phase[words[i]])
        _refuse(
            found,
            machine,
            group,
            site,
            words,
            i,
            f"arrives at {{}} in phase {phase}, and nobody has waited for phase {phase - 1}",
            "a wait for each phase, and the number of threads that the barrier was initialised for",
        )
    if incomplete and (left < 1).any():
        i = int(np.flatnonzero(left < 1)[0])
        _refuse(
            found,
            machine,
            group,
            site,
            words,
            i,
            "completes a phase of {} with arrive.noComplete",
            "the count: the last arrival of a phase is one without .noComplete",
        )


def _signal(found, words, count) -> None:
    """Make the arrivals, and begin the next phase where they were the last."""
    found.in_vain = 0
    np.subtract.at(found.pending, words, count)
    ended = np.unique(words[found.pending[words] == 0])
    if ended.size:
        found.phase[ended] += 1
        found.pending[ended], found.waited[ended] = found.expected[ended], False
        found.knowledge.opened(found.phases(ended))


def _never(found, machine, group, site, word: int):
    arrived, expected = int(found.expected[word] - found.pending[word]), int(found.expected[word])
    others = group.size - 1
    who = machine.thread_name(int(group.lanes[0])) + (f" and {others} more wait" if others else " waits")
    raise NoProgress(
        f"{who} for phase {found.phase[word]} of the mbarrier {found.name(machine, word)} and will for ever: "
        f"{arrived:,} of {expected:,} arrivals are made, and no thread makes another",
        kernel=machine.program.name,
        where=machine.program.line_of_site(site),
        hint="the number of arrivals that the barrier was initialised for; a branch or a return by which "
        "some threads do not arrive; two threads that each wait for what the other does afterwards",
    )


def _refuse(found, machine, group, site, words, i: int, does: str, hint: str):
    raise _misuse(machine, int(group.lanes[i]), site, does.format(found.name(machine, int(words[i]))), hint)


def _misuse(machine, lane: int, site: int, does: str, hint: str) -> BarrierMisuse:
    program = machine.program
    where = program.line_of_site(site)
    return BarrierMisuse(f"{machine.thread_name(lane)} {does}", kernel=program.name, where=where, hint=hint)
