"""The dask cluster that kshot starts is nobody else's: TLS with a certificate of the moment, loopback only."""

from pathlib import Path

import pytest

from kshot.bench.engines.dask import DaskEngine
from other_user import needs_root, tried

pytestmark = pytest.mark.ci

distributed = pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")


@pytest.fixture(scope="module")
def client():
    with DaskEngine(1)._client() as started:
        yield started


def test_nobody_without_the_certificate_reaches_the_cluster(client):
    address = client.scheduler_info()["address"]
    assert address.startswith("tls://127.0.0.1:")
    assert client.submit(sum, [1, 2]).result() == 3
    strangers = distributed.Security.temporary()
    for other, security in ((address.replace("tls://", "tcp://"), None), (address, strangers)):
        with pytest.raises((OSError, RuntimeError)):
            distributed.Client(other, timeout="3s", security=security)
    own = psutil.Process()
    sockets = [s for p in (own, *own.children(recursive=True)) for s in p.net_connections("tcp")]
    listening = {s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


@needs_root
def test_another_user_of_the_machine_neither_reaches_it_nor_finds_its_key(client):
    address = client.scheduler_info()["address"]
    workers = [process.pid for process in psutil.Process().children(recursive=True)]
    strangers = distributed.Security.temporary()
    plain, theirs, ours, *environments = tried(
        ("compute", address.replace("tls://", "tcp://"), None),
        ("compute", address, keys(strangers)),
        ("compute", address, keys(client.security)),
        *(("read", f"/proc/{pid}/environ") for pid in workers),
    )
    assert ours == 3, "with the key it must work, or the others fail for another reason"
    assert {type(plain), type(theirs)} == {str}, "an error's name each"
    assert set(environments) == {"PermissionError"}
    # What everybody may read of a process is its command.
    assert not any(b"BEGIN" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in workers)


def keys(security) -> dict[str, str]:
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    return {name: getattr(security, name) for name in names}
