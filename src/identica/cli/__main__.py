"""python -m identica.cli, as under torchrun."""

import sys

from identica.cli import main

sys.exit(main())
