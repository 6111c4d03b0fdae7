"""The claims ledger: popular claims about GPUs, and the arithmetic that decides whether they hold.

``claims.yml`` has the claims, their verdicts and reasons. A verdict that arithmetic or the hardware registry
can decide names a function of this package. It returns a Decision: the readings of the claim, each true or
false, and the numbers that the page quotes. If all readings are true the claim "holds", if none is it is
"wrong", otherwise it "holds if".
"""

from workshop.claims.decision import HOLDS, HOLDS_IF, WRONG, Decision
from workshop.claims.ledger import Claim, functions, ledger, path

__all__ = ["HOLDS", "HOLDS_IF", "WRONG", "Claim", "Decision", "functions", "ledger", "path"]
