import pytest

from identica.datasets.root import data_root


@pytest.fixture(scope="session")
def real():
    """Finds a file of real data, or skips the test where it is absent."""

    def find(*parts):
        path = data_root().joinpath(*parts)
        if not path.exists():
            pytest.skip(f"needs {'/'.join(parts)} under IDENTICA_DATA")
        return path

    return find
