"""Where student code runs. One interface, `Sandbox.run(request) -> Response`; one implementation so far, a local process.

`LocalProcess` limits time, memory and files, and nothing else: it keeps honest mistakes apart, not attacks. Every result
made with it carries its `isolation` text.
"""

from autograder.sandbox.local import LocalProcess
from autograder.sandbox.types import Limits, Request, Response, Sandbox, Step

__all__ = ["Limits", "LocalProcess", "Request", "Response", "Sandbox", "Step"]
