"""A real single-node SLURM (slurmctld, slurmd, munged) in a temporary folder, for tests."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "scontrol")
CONFIG = """\
ClusterName=kshot
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
SlurmdPort={slurmd_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
InactiveLimit=0
KillWait=2
MinJobAge=300
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=2000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def available() -> bool:
    return os.getuid() == 0 and all(shutil.which(program) for program in PROGRAMS)


class SlurmNode:
    """Starts the daemons, submits files, kills jobs; everything lives below one folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
        self.daemons: list[subprocess.Popen] = []

    def __enter__(self) -> "SlurmNode":
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.folder.chmod(0o755)
        host = socket.gethostname().split(".")[0]
        ports = _free_ports(2)
        config = CONFIG.format(
            folder=self.folder, host=host, cpus=os.cpu_count(), port=ports[0], slurmd_port=ports[1]
        )
        (self.folder / "slurm.conf").write_text(config)
        self._start(
            "munged",
            "--foreground",
            "--force",
            f"--socket={self.folder}/munge.socket",
            f"--key-file={key}",
            f"--pid-file={self.folder}/munge.pid",
            f"--log-file={self.folder}/munge.log",
            f"--seed-file={self.folder}/munge.seed",
        )
        _wait_for((self.folder / "munge.socket").exists, "munged did not start")
        self._start("slurmctld", "-D", "-c")
        self._start("slurmd", "-D", "-N", host)
        _wait_for(lambda: "idle" in self._ask("sinfo", "-h", "-o", "%t"), "the node did not come up", 60)
        return self

    def __exit__(self, *error: object) -> None:
        self._ask("scancel", "--user=root")
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def submit(self, script: Path) -> str:
        """The job id of an sbatch file."""
        command = ["sbatch", "--parsable", str(script)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, cwd=script.parent
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def active(self, job: str) -> bool:
        return bool(self._ask("squeue", "-h", "-j", job, "-o", "%i").strip())

    def wait(self, job: str, seconds: float = 300) -> None:
        _wait_for(lambda: not self.active(job), f"job {job} did not end", seconds)

    def _ask(self, *command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, env=self.environment).stdout

    def _start(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("w") as log:
            self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait_for(condition, message: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, message
        time.sleep(0.2)
