"""The claims ledger: what popular accounts say about GPUs, and the arithmetic that decides whether it holds.

``claims.yml`` has the claims, their verdicts and why; a verdict that arithmetic or the
hardware registry can decide
names a function of this package. Each such function returns a Decision: the readings
under which the claim was tried (true or
false each) and the numbers that the page quotes. All readings true: it holds; none: it
is wrong; some: it holds if.
"""

from workshop.claims.decision import HOLDS, HOLDS_IF, WRONG, Decision
from workshop.claims.ledger import Claim, functions, ledger, path

__all__ = ["HOLDS", "HOLDS_IF", "WRONG", "Claim", "Decision", "functions", "ledger", "path"]
