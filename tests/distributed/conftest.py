import pytest
from tests.distributed.ranks import Ranks


@pytest.fixture(scope="session")
def ranks():
    standing_by = Ranks()
    yield standing_by
    standing_by.close()
