"""`identica reproduce` with studies of the tests: python -m helpers.reproduce STUDY …"""

import signal
import sys

from helpers import counting, tiny
from identica import cli
from identica.studies import catalogue

STUDIES = {
    "tiny": tiny.Quick("tiny", "A tiny table", tiny.ROWS),
    "endless": counting.study([counting.Count(1, 900, 0.1)]),
    "four": counting.study([counting.Count(n, steps=8, pause=0.2) for n in range(1, 5)]),
}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    catalogue.STUDIES |= STUDIES
    sys.exit(cli.main(["reproduce", *sys.argv[1:]]))
