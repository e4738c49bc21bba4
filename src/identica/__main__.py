"""python -m identica"""

import sys

from identica.cli import main

sys.exit(main())
