import pytest

from kshot.stats import bootstrap


@pytest.fixture(scope="module")
def few_resamples():
    """For tests that ask what is said, not how sure it is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bootstrap, "RESAMPLES", 200)
        bootstrap.shared_draws.cache_clear()
        yield
    bootstrap.shared_draws.cache_clear()
