"""The process that looks into a submission, in the judge's stead.

It gets bytes and texts and gives flat lists: no assignment, no seed, no expected value, no other submission.
`main(folder, fd)` serves the grader on the socket `fd` until the other end is closed. Whatever a submission
does to it ends here: a parser without limits meets a limit on time and memory, and one that is broken into
speaks for this submission alone (autograder.judge.reading says what the judge believes of it).
"""

import gc

from autograder.reader.contents import MAX_SOURCE, NoNotebook, cells_of, schema
from autograder.reader.needed import cuda_cpp_in, idle_cells
from autograder.sandbox.messages import Channel, Contents, Examine, Examined, Read, Unreadable, serve

schema()  # loaded with this module, by the warm parent: no process of a job has to


def main(folder: str, fd: int) -> None:
    """Answer Read and Examine, one after another."""
    gc.disable()  # it would look through a document of millions of lists again and again

    def handle(channel: Channel, message: Read | Examine) -> None:
        channel.send(read(message) if isinstance(message, Read) else examine(message))

    serve(fd, (Read, Examine), handle)


def read(message: Read) -> Contents | Unreadable:
    """The cells of a notebook."""
    try:
        return Contents([dict(cell) for cell in cells_of(message.data.tobytes())])
    except NoNotebook as problem:
        return Unreadable(problem.code, str(problem))


def examine(message: Examine) -> Examined:
    """What is known of a notebook's code without running it."""
    texts = dict.fromkeys(text for _, source, _ in message.cells for text in cuda_cpp_in(source))
    room = MAX_SOURCE
    kept: list[str] = []
    for text in reversed(texts):  # where a kernel is written twice, the last one counts
        room -= len(text)
        if room >= 0:
            kept.append(text)
    return Examined(idle_cells(message.cells), kept)
