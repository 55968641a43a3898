import numpy as np
import pytest
from cases import KERNELS


@pytest.fixture(params=list(KERNELS))
def kernel(request):
    return KERNELS[request.param]


@pytest.fixture
def small():
    """13 points in three columns, and the value of a smooth function there."""
    x = np.random.default_rng(0).random((13, 3))
    return x, np.sin(6 * x[:, 0]) + x[:, 1] ** 2 - x[:, 2]
