"""The fuzzer: random constraints, layers and queries, compared with enumeration.

``make fuzz``, or ``python -m tests.fuzz --minutes 5 --seed 1``. Each case is a function of the seed and its number.
"""

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parent.parent
for _folder in (_TESTS.parent, _TESTS / "support", _TESTS / "distributions"):
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))
