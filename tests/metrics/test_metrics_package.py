import subprocess
import sys

import identica.metrics


def test_all_names_are_there():
    for name in identica.metrics.__all__:
        assert hasattr(identica.metrics, name), name


def test_the_import_is_light():
    """What the package itself adds to the import must not pull in the heavy libraries."""
    code = (
        "import sys, identica; before = set(sys.modules); import identica.metrics;"
        "print(*{'numba', 'pandas', 'scipy', 'sklearn', 'torch', 'tqdm'} & (set(sys.modules) - before))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == ""
