"""The process that parses a submission instead of the judge.

It receives bytes and source texts and returns flat lists; it knows no assignment, seed, expected value or
other submission. `main(folder, fd)` serves the grader on the socket `fd` until the other end is closed. A
file that makes a parser run away meets the process's limits on time and memory; one that takes the process
over can only answer for its own submission (autograder.judge.reading says which answers are used).
"""

import gc

from autograder.reader.contents import MAX_SOURCE, NoNotebook, cells_of, schema
from autograder.reader.needed import cuda_cpp_in, idle_cells
from autograder.sandbox.messages import Channel, Contents, Examine, Examined, Read, Unreadable, serve

schema()  # loaded by the warm parent when it imports this module, so that no job has to


def main(folder: str, fd: int) -> None:
    """Answer Read and Examine, one after another."""
    gc.disable()  # a document may hold millions of lists, which the collector would traverse repeatedly

    def handle(channel: Channel, message: Read | Examine) -> None:
        channel.send(read(message) if isinstance(message, Read) else examine(message))

    serve(fd, (Read, Examine), handle)


def read(message: Read) -> Contents | Unreadable:
    """The cells of a notebook file, or why it cannot be read."""
    try:
        return Contents([dict(cell) for cell in cells_of(message.data.tobytes())])
    except NoNotebook as problem:
        return Unreadable(problem.code, str(problem))


def examine(message: Examine) -> Examined:
    """The idle cells and the C++ kernels in a notebook's code, found without running it."""
    texts = dict.fromkeys(text for _, source, _ in message.cells for text in cuda_cpp_in(source))
    room = MAX_SOURCE
    kept: list[str] = []
    for text in reversed(texts):  # where a kernel is written twice, the last one counts
        room -= len(text)
        if room >= 0:
            kept.append(text)
    return Examined(idle_cells(message.cells), kept)
