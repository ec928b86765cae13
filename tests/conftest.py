"""What all tests share: repeatable randomness, one thread per worker, no traces outside of the test run."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

# Two workers with a thread each beat two workers that fight for the same cores; child processes inherit this. It has
# to be set before numpy and torch load their thread pools.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# What is compiled in a test must not be found in, nor stay behind in, the user's own cache.
_CACHE = tempfile.mkdtemp(prefix="semprola-tests-")
os.environ["XDG_CACHE_HOME"] = _CACHE

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from semprola.engine import get_engine, set_engine  # noqa: E402
from semprola.engine.backends import BACKENDS  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent

_EXTENSIVE = [
    ROOT / name for name in ("tests/browser", "tests/benchmarks", "tests/examples", "tests/experiments", "experiments")
]

torch.set_num_threads(1)

# A shell starts what runs in its background with Ctrl-C ignored, and children inherit that. Tests of Ctrl-C need it.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something about the machine, not about the code.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("repeatable"), max_examples=400)
settings.register_profile("explore", settings.get_profile("repeatable"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(autouse=True)
def seed() -> int:
    """Seed every generator that a test may draw from; the value is there for tests that need one of their own."""
    value = 20220601
    random.seed(value)
    np.random.seed(value)
    torch.manual_seed(value)
    return value


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published data sets and oracles; skips the test where it is absent."""
    chosen = os.environ.get("SEMPROLA_SHARED")
    if chosen is not None and not Path(chosen).is_dir():
        pytest.fail(f"SEMPROLA_SHARED is {chosen!r}, which is not a folder", pytrace=False)
    folder = Path(chosen) if chosen is not None else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data, which is not part of the project")
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="I/N", default="1/1", help="run only the I-th of N parts of the tests")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test` does not even import what it leaves out as a whole."""
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return True if everything and config.option.markexpr == "not extensive" and collection_path in _EXTENSIVE else None


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Mark the tests that ask for the shared data, and those that are left to `make test-all`.

    Those are the tests of experiments and benchmarks, which nothing in the package needs, and of the browser. And every
    function of every engine back end has a referee in `tests/engine`. So elsewhere, `make test` takes the fastest back
    end, and each of the others for one test in six.
    """
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _EXTENSIVE):
            item.add_marker(pytest.mark.extensive)
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.shared)
        engine = _engine_of(item)
        outside = not item.path.is_relative_to(ROOT / "tests" / "engine")
        if outside and engine not in (None, BACKENDS[0].name) and zlib.crc32(item.nodeid.encode()) % 6:
            item.add_marker(pytest.mark.extensive)
    number, count = map(int, config.getoption("--part").split("/"))
    items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % count == number - 1]


def _engine_of(item: pytest.Item) -> str | None:
    """What the fixture `each_engine` will be for a test."""
    call = getattr(item, "callspec", None)
    return None if call is None else call.params.get("each_engine")


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    shutil.rmtree(_CACHE, ignore_errors=True)


# without a GPU, Triton's kernels run only where they are interpreted: `make test-triton`
@pytest.fixture(params=[backend.name for backend in BACKENDS if backend.name != "triton" or backend.is_present()])
def each_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs a test with each engine; whole files say ``pytestmark = pytest.mark.usefixtures("each_engine")``."""
    if not next(backend for backend in BACKENDS if backend.name == request.param).is_present():
        pytest.skip(f"semprola was built without its {request.param} module")
    before = get_engine()
    set_engine(request.param)
    yield
    set_engine(before)
