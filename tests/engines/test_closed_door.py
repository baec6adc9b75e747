"""The dask cluster that kshot starts is nobody else's: TLS with a certificate of the moment, loopback only."""

import pytest

from kshot.bench.execution.engines.dask import DaskEngine

distributed = pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")


def test_nobody_without_the_certificate_reaches_the_cluster():
    with DaskEngine(1)._client() as client:
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
