"""``mbarrier``: barriers that are objects in shared memory, at which threads arrive and for which they wait.

An object has a phase, counted from 0, and two counts: the arrivals that each phase expects, and those still
pending. A phase is complete, and the next begins, when no arrivals are pending and all bytes that it expects
from bulk copies have been copied (PTX ISA, "mbarrier"). An arrival returns a token, which holds the object,
the phase and the pending arrivals. A wait does not block: it returns whether the phase is complete, and
programs repeat it, so the machine lets other groups run meanwhile. An asynchronous copy signals at once, as
the engine copies at once; ``async_copies`` refuses reads that are too early. ``sanitizer.vector_clocks`` has
the order that arrivals and waits establish.

What the manual leaves undefined is an error here: an object that is not initialised or whose count is out of
range, initialising it twice, more arrivals than a phase expects, an arrival in a phase before any thread has
waited for the previous one, the token of another object or of an older phase, and a plain access to the
object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warplab.simt.engine.async_copies import ChunkWatch, copies
from warplab.simt.engine.clusters import MEMORIES
from warplab.simt.engine.generic_addresses import in_several_spaces, resolve
from warplab.simt.engine.indices import array_at
from warplab.simt.engine.movement import space_of
from warplab.simt.errors import BarrierMisuse, LaunchError, NoProgress, SharedRace, Wording
from warplab.simt.ptx.parser import Reg

SIZE = 8  # bytes of an object, and its alignment
MOST = (1 << 20) - 1  # the largest count
IN_VAIN = 1 << 12  # failed waits in a row, without any other write to memory, that count as a deadlock

# The fields of a token, from the highest bit on: a mark, .noComplete, the phase, the object's number in its
# block, the pending arrivals before this one.
MARK, INCOMPLETE = np.uint64(1 << 63), np.uint64(1 << 62)
PHASE_SHIFT, WORD_SHIFT = np.uint64(35), np.uint64(20)
PHASE_MASK, WORD_MASK, PENDING_MASK = np.uint64((1 << 27) - 1), np.uint64((1 << 15) - 1), np.uint64(MOST)
ONE = np.ones(1, np.int64)


def mbarrier(code, instr):
    """``mbarrier.init``, ``inval``, ``arrive``, ``arrive_drop``, ``test_wait``, ``try_wait``,
    ``pending_count``, ``expect_tx`` (alone, and with an arrival) and ``complete_tx``.
    """
    form, operands = instr.mods[0], instr.operands
    if form in ("expect_tx", "complete_tx"):
        count = code.use(operands[1], "u4")
        code.emit(f"mbarrier.{form}({place(code, instr, operands[0])}, {count})")
        return
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
        if "expect_tx" in instr.mods:
            code.emit(f"mbarrier.expect_tx({where}, {given})")
            given = "mbarrier.ONE"
        how = f"{form == 'arrive_drop'}, {'noComplete' in instr.mods}, {orders}, {operands[0] == Reg('_')}"
        code.define(operands[0], f"mbarrier.arrive({where}, {given}, {how})", "u8")
    elif form in ("test_wait", "try_wait"):
        parity = "parity" in instr.mods
        sought = code.use(operands[2], "u4" if parity else "u8")
        code.define(operands[0], f"mbarrier.wait({where}, {sought}, {parity}, {orders})", "?")
    else:
        raise code.unsupported(instr)


def has_result(instr) -> bool:
    """Whether the first operand is a register that the instruction writes."""
    return instr.mods[0] not in ("init", "inval", "expect_tx", "complete_tx")


def place(code, instr, address) -> str:
    """The first arguments of the functions below, by which they find the objects, as code."""
    base, offset = code.base_and_offset(address)
    return f"memory, group, {code.site(instr)}, {space_of(instr)!r}, {base}, {offset}"


class Mbarriers(ChunkWatch):
    """The objects of a chunk of blocks, by the words of its shared memory. Observer: refuses plain accesses
    to a live object. The first instruction that uses an object adds it to the machine's observers.
    """

    def __init__(self, machine):
        super().__init__(machine)
        words = machine.shared.size // SIZE
        self.live = np.zeros(words, bool)
        self.expected, self.pending, self.phase = np.zeros((3, words), np.int64)
        self.bytes = np.zeros(words, np.int64)  # bytes still expected from bulk copies ("tx-count")
        self.awaited = np.zeros(words, bool)  # whether some thread has waited for the previous phase
        # of its initialisation: the lane, the value of ``synchronised``, and the site
        self.maker, self.made_at, self.made_by = np.zeros((3, words), np.int64)
        self.number = np.zeros(words, np.int64)  # counts initialisations; part of the numbers of phases
        self.numbers = self.in_vain = 0
        self.synchronised = 0  # number of barriers and fences so far

    def phases(self, words: np.ndarray, back: int = 0) -> np.ndarray:
        """Unique numbers of the objects' phases: the current ones, or ``back`` = 1 for the previous ones."""
        return (self.number[words] << 32) + self.phase[words] - back

    def signal(self, words: np.ndarray, count: np.ndarray) -> None:
        """Make ``count`` arrivals; begin the next phase where none is pending and no bytes are missing."""
        self.in_vain = 0
        np.subtract.at(self.pending, words, count)
        ended = np.unique(words[(self.pending[words] == 0) & (self.bytes[words] == 0)])
        if ended.size:
            self.phase[ended] += 1
            self.pending[ended], self.awaited[ended] = self.expected[ended], False

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if what != "read":
            self.in_vain = 0
        if space not in MEMORIES:
            return
        does = "reads" if what == "read" else "writes to"
        hint = "an index that reaches the barrier; its memory may be used again after mbarrier.inval"
        for part in range(0, max(width, 1), SIZE):
            words = access.offset + offset + part >> 3

            def said(i: int, words=words) -> str:
                return f"{does} the mbarrier {self.name(machine, int(words[i]))} as data"

            machine.refuse(BarrierMisuse, group, site, self.live[words], said, hint)

    def name(self, machine, word: int) -> str:
        program, byte = machine.program, word * SIZE % machine.shared_stride
        array = array_at(program.shared_arrays, byte)
        name = array.name if array and array.size == SIZE and array.name else program.shared_place(byte, SIZE)
        if not self.live[word]:
            return name
        return f"{name} (initialised in {program.line_of_site(int(self.made_by[word]))})"

    def _synchronise(self, *_, **__) -> None:
        self.in_vain = 0
        self.synchronised += 1

    warp_barrier = barrier = met = fence = waited = _synchronise


@dataclass(frozen=True)
class _Use:
    """The objects that the lanes of one instruction address, by their words of the chunk's shared memory."""

    found: Mbarriers
    machine: Any
    group: Any
    site: int
    words: np.ndarray

    def refuse(
        self, bad: np.ndarray, does: Wording, hint: str, kind: type[LaunchError] = BarrierMisuse
    ) -> None:
        """``Machine.refuse``, with ``{}`` in ``does`` replaced by the object's name."""

        def said(i: int) -> str:
            return (does if isinstance(does, str) else does(i)).format(self.name(i))

        self.machine.refuse(kind, self.group, self.site, bad, said, hint)

    def name(self, i: int) -> str:
        return self.found.name(self.machine, int(self.words[i]))

    @property
    def phases(self) -> np.ndarray:
        return self.found.phases(self.words)

    @property
    def within(self) -> np.ndarray:
        """The words, counted from the start of their block's shared memory."""
        return (self.words * SIZE % self.machine.shared_stride // SIZE).astype(np.uint64)

    def tell_arrived(self) -> None:
        for observer in self.machine.observers:
            observer.arrived(self.machine, self.group.lanes, self.phases)

    def refuse_bytes(self) -> None:
        """Refuse more copied bytes than a phase expects, and counts of bytes beyond the largest."""
        left, pending = self.found.bytes[self.words], self.found.pending[self.words]
        self.refuse(
            (left < 0) & (pending == 0),
            lambda i: (
                f"ends a phase of {{}} to which bulk copies have brought {-left[i]:,} bytes more than "
                "expect_tx announced"
            ),
            "the bytes that expect_tx announces, which is the box's whole size, before the phase's last "
            "arrival; and that one thread alone starts each copy",
        )
        self.refuse(
            abs(left) > MOST, f"makes {{}} count more than {MOST:,} bytes", "smaller copies, or more barriers"
        )


def init(memory, group, site, space, base, offset, count):
    """``mbarrier.init``: phase 0 begins. Raises BarrierMisuse for a bad count or a second initialisation."""
    use = _use(memory, group, site, space, base, offset)
    found, words = use.found, use.words
    count = np.broadcast_to(count, words.shape).astype(np.int64)
    wrong = (count < 1) | (count > MOST)
    use.refuse(
        wrong, lambda i: f"initialises {{}} for {count[i]:,} arrivals", f"the count, which is 1 to {MOST:,}"
    )
    again = found.live[words] | (_before(words, ONE) > 0)
    use.refuse(
        again, "initialises {} again", "let one thread initialise it, once; mbarrier.inval ends its life"
    )
    found.live[words] = True
    found.expected[words] = found.pending[words] = count
    found.phase[words], found.awaited[words], found.bytes[words] = 0, True, 0
    found.maker[words], found.made_at[words] = group.lanes, found.synchronised
    found.made_by[words] = site
    found.number[words] = found.numbers + np.arange(words.size)
    found.numbers += words.size


def inval(memory, group, site, space, base, offset):
    use = live(memory, group, site, space, base, offset, "invalidates {}")
    use.found.live[use.words] = False


def arrive(memory, group, site, space, base, offset, count, drops, incomplete, orders, tokenless):
    """Arrive; returns the tokens. ``drops``: later phases expect as many arrivals fewer. ``incomplete``: the
    arrival must not complete the phase. ``tokenless``: the tokens are not used, which allows an arrival at
    an object of another block.
    """
    use = live(memory, group, site, space, base, offset, "arrives at {}", tokenless)
    found, words = use.found, use.words
    count = np.broadcast_to(count, words.shape).astype(np.int64)
    use.refuse(count < 1, "arrives at {} with the count 0", "the count")
    before = found.pending[words] - _before(words, count)
    _refuse_arrivals(use, before - count, incomplete)
    token = MARK | (INCOMPLETE if incomplete else np.uint64(0)) | before.astype(np.uint64)
    token |= use.within << WORD_SHIFT | (found.phase[words].astype(np.uint64) & PHASE_MASK) << PHASE_SHIFT
    if orders:
        use.tell_arrived()
    if drops:
        np.subtract.at(found.expected, words, count)
    found.signal(words, count)
    use.refuse_bytes()
    return token


def expect_tx(memory, group, site, space, base, offset, count):
    """The current phase expects ``count`` more bytes."""
    use = live(memory, group, site, space, base, offset, "expects bytes at {}", True)
    np.add.at(use.found.bytes, use.words, np.broadcast_to(count, use.words.shape).astype(np.int64))
    use.refuse_bytes()


def complete_tx(memory, group, site, space, base, offset, count):
    """Signal what a copy of ``count`` bytes would."""
    brought(live(memory, group, site, space, base, offset, "brings bytes to {}", True), count)


def brought(use: _Use, count) -> None:
    """Copies that the lanes have started complete ``count`` bytes each. The copy, and what the lane did
    before it, happens before the end of the phase.
    """
    use.tell_arrived()
    found, words = use.found, use.words
    np.subtract.at(found.bytes, words, np.broadcast_to(count, words.shape).astype(np.int64))
    use.refuse_bytes()
    found.signal(words, np.zeros(words.shape, np.int64))


def track(memory, group, site, space, base, offset, counted: bool):
    """``cp.async.mbarrier.arrive``: arrive when all ``cp.async`` copies of the lane so far are complete.

    ``counted``: the phase expects this arrival already (``.noinc``); otherwise its pending count grows by 1.
    """
    use = live(memory, group, site, space, base, offset, "lets copies arrive at {}")
    found, words = use.found, use.words
    if counted:
        _refuse_arrivals(use, found.pending[words] - _before(words, ONE) - 1, False)
    else:
        full = found.pending[words] >= MOST
        use.refuse(full, f"makes {{}} expect more than {MOST:,} arrivals", "its count")
    copies(memory).track(group.lanes, found.phases(words))
    use.tell_arrived()
    if counted:
        found.signal(words, np.ones(words.shape, np.int64))


def wait(memory, group, site, space, base, offset, sought, parity: bool, orders: bool):
    """Whether a phase is complete, by lane. ``sought``: its token, or with ``parity`` its lowest bit."""
    use = live(memory, group, site, space, base, offset, "waits for {}")
    found, words = use.found, use.words
    sought = np.broadcast_to(sought, words.shape)
    if parity:
        use.refuse(sought > 1, lambda i: f"waits for {{}} with the parity {sought[i]}", "a parity is 0 or 1")
        complete = found.phase[words] % 2 != sought
    else:
        complete = found.phase[words] > _phase_of(use, sought)
    if complete.any():
        found.in_vain = 0
        there = words[complete]
        found.awaited[there] = True
        if orders:
            for observer in use.machine.observers:
                observer.waited(use.machine, group.lanes[complete], found.phases(there, back=1))
    else:
        found.in_vain += 1
        use.machine.yields = True
        if found.in_vain > IN_VAIN:
            _never(use)
    return complete


def _phase_of(use: _Use, token: np.ndarray) -> np.ndarray:
    """The phase of each token, which must be its object's current phase or the previous one."""
    foreign = (token & MARK == 0) | (token >> WORD_SHIFT & WORD_MASK != use.within)
    use.refuse(
        foreign,
        "waits for {} with a token that it did not give",
        "which barrier the token comes from: what arrive() of the same barrier returned",
    )
    phase, now = (token >> PHASE_SHIFT & PHASE_MASK).astype(np.int64), use.found.phase[use.words]
    use.refuse(
        now - phase > 1,
        lambda i: f"waits for phase {phase[i]} of {{}}, which is in phase {now[i]} by now",
        "a token is good until the phase after its own is complete: the number of threads that the barrier "
        "was initialised for, and who arrives without having waited",
    )
    return phase


def pending_count(memory, group, site, token):
    """The pending arrivals before the arrival that returned the token."""
    bad = (token & (MARK | INCOMPLETE)) != (MARK | INCOMPLETE)
    does = "asks for the pending count of a state that is not a token of arrive.noComplete"
    memory.machine.refuse(BarrierMisuse, group, site, bad, does, "which instruction the state comes from")
    return (token & PENDING_MASK).astype(np.uint32)


def _use(memory, group, site, space, base, offset, reaches_others=False) -> _Use:
    machine = memory.machine
    if space == "generic":
        space, base = ("", base) if in_several_spaces(base) else resolve(base)
        does, hint = "uses an mbarrier outside shared memory", "where the barrier is declared: __shared__"
        machine.refuse(BarrierMisuse, group, site, np.array(space not in MEMORIES), does, hint)
    access = memory.checked(group, site, space, base, offset, SIZE, "write")
    words = np.broadcast_to((access.offset + offset) // SIZE, (group.size,))
    if space == "cluster":
        _visit(machine, group, site, access, offset, reaches_others)
    return _Use(memory.watch(Mbarriers), machine, group, site, words)


def _visit(machine, group, site, access, offset, allowed: bool) -> None:
    """Tell the observers of uses of another block's objects; refuse them unless ``allowed``."""
    away = access.offset // machine.shared_stride != machine.block_of_lane[group.lanes]
    if not allowed:
        does = "uses an mbarrier of another block, at which it may only arrive, without taking the token"
        machine.refuse(BarrierMisuse, group, site, away, does, "whose barrier it is")
    if away.any():
        for observer in machine.observers:
            observer.visited(machine, group, site, access, offset)


def live(memory, group, site, space, base, offset, does: str, reaches_others=False) -> _Use:
    """The objects of an instruction, as ``_use``. Raises BarrierMisuse if one is not initialised, SharedRace
    if another thread initialised it without a barrier or fence since.
    """
    use = _use(memory, group, site, space, base, offset, reaches_others)
    found = use.found
    use.refuse(
        ~found.live[use.words],
        f"{does}, which is not an initialised mbarrier",
        "init() by one thread and a __syncthreads() before the first use; none after inval",
    )
    maker = found.maker[use.words]
    unknown = (group.lanes != maker) & (found.made_at[use.words] == found.synchronised)
    use.refuse(
        unknown,
        lambda i: (
            f"{does}, and nothing orders that after its initialisation by {use.machine.thread_name(maker[i])}"
        ),
        "a __syncthreads() between the initialisation of a barrier and its first use",
        SharedRace,
    )
    return use


def _before(words: np.ndarray, count: np.ndarray) -> np.ndarray:
    """For each lane the sum of the counts of earlier lanes at the same object."""
    count = np.broadcast_to(count, words.shape)
    order = np.argsort(words, kind="stable")
    ordered, before = words[order], np.cumsum(count[order]) - count[order]
    new = np.r_[True, ordered[1:] != ordered[:-1]]
    out = np.empty(words.size, np.int64)
    out[order] = before - before[new][np.cumsum(new) - 1]
    return out


def _refuse_arrivals(use: _Use, left: np.ndarray, incomplete: bool) -> None:
    """Refuse arrivals that a phase does not allow; ``left``: the pending arrivals after each of them."""
    found, words = use.found, use.words
    phase, expected = found.phase[words], found.expected[words]
    use.refuse(
        left < 0,
        lambda i: f"arrives at {{}} in phase {phase[i]}, whose {expected[i]:,} arrivals are all made",
        "the number of threads that the barrier was initialised for, and whether each waits for a phase "
        "before it arrives in the next",
    )
    use.refuse(
        ~found.awaited[words],
        lambda i: f"arrives at {{}} in phase {phase[i]}, and nobody has waited for phase {phase[i] - 1}",
        "a wait for each phase, and the number of threads that the barrier was initialised for",
    )
    if incomplete:
        use.refuse(
            left < 1,
            "completes a phase of {} with arrive.noComplete",
            "the count: the last arrival of a phase is one without .noComplete",
        )


def _never(use: _Use):
    found, word, lanes = use.found, int(use.words[0]), use.group.lanes
    expected = int(found.expected[word])
    others = f"and {lanes.size - 1} more wait" if lanes.size > 1 else "waits"
    done, missing = expected - int(found.pending[word]), int(found.bytes[word])
    why = f"{done:,} of {expected:,} arrivals are made"
    if missing > 0:
        bytes_ = f"{missing:,} of the bytes that it expects have not come, and no thread starts another copy"
        why = f"{bytes_}; {why}"
        hint = (
            "the bytes that expect_tx announces: what the copies of this phase bring, which is a box's whole "
            "size, also where it lies beyond the array; a copy that nobody starts, or that completes at "
            "another barrier"
        )
    else:
        why += ", and no thread makes another"
        hint = (
            "the number of arrivals that the barrier was initialised for; a branch or a return by which some "
            "threads do not arrive; the parity of the wait, 0 for the first phase, 1 for the next, then 0 "
            "again; two threads that each wait for what the other does afterwards"
        )
    text = f"{others} for phase {found.phase[word]} of the mbarrier {use.name(0)} and will for ever: {why}"
    use.machine.refuse(NoProgress, use.group, use.site, np.array(True), text, hint)
