"""A real single-node SLURM (slurmctld, slurmd, munged) in a temporary folder, for tests."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

from processes import wait_until

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "scontrol")
ATTEMPTS = 5
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
MessageTimeout=60
BatchStartTimeout=180
UnkillableStepTimeout=300
MinJobAge=3600
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
        try:
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
            wait_until((self.folder / "munge.socket").exists, "munged did not start")
            for _ in range(ATTEMPTS):
                if self._comes_up():
                    return self
            raise AssertionError(f"slurmctld or slurmd ended at every start; see the logs in {self.folder}")
        except BaseException:
            self._stop(self.daemons)
            raise

    def __exit__(self, *error: object) -> None:
        self._ask("scancel", "--user=root")
        self._stop(self.daemons)

    def _comes_up(self) -> bool:
        """Starts the two daemons; not when one of them ends, as it does where others took its port meanwhile."""
        host = socket.gethostname().split(".")[0]
        port, slurmd_port = _free_ports(2)
        config = CONFIG.format(folder=self.folder, host=host, cpus=os.cpu_count(), port=port, slurmd_port=slurmd_port)
        (self.folder / "slurm.conf").write_text(config)
        pair = [self._start("slurmctld", "-D", "-c"), self._start("slurmd", "-D", "-N", host)]

        def ended() -> bool:
            return any(daemon.poll() is not None for daemon in pair)

        def idle() -> bool:
            return "idle" in self._ask("sinfo", "-h", "-o", "%t").stdout

        wait_until(lambda: ended() or idle(), "the node did not come up")
        if ended():
            self._stop(pair)
            return False
        return True

    def _stop(self, daemons: list[subprocess.Popen]) -> None:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(60)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def submit(self, script: Path) -> str:
        """The job id of an sbatch file."""
        command = ["sbatch", "--parsable", str(script)]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, cwd=script.parent)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def active(self, job: str) -> bool:
        """Whether the job waits or runs; a controller too busy to answer does not end it."""
        said = self._ask("squeue", "-h", "-j", job, "-o", "%i")
        return said.returncode != 0 or bool(said.stdout.strip())

    def wait(self, job: str, seconds: float = 600) -> None:
        wait_until(lambda: not self.active(job), f"job {job} did not end", seconds)

    def _ask(self, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run(command, capture_output=True, text=True, env=self.environment)

    def _start(self, *command: str) -> subprocess.Popen:
        with (self.folder / f"{command[0]}.out").open("w") as log:
            daemon = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        self.daemons.append(daemon)
        return daemon


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
