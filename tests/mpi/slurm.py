# Slurm on this machine alone: munged, slurmctld and slurmd as processes of the test, with a
# configuration and ports of their own.
#
# SPDX-License-Identifier: Apache-2.0
#
# Debian: slurmctld, slurmd, slurm-client, munge. Nothing of the machine's own Slurm is touched;
# all ends with `close`.
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import time

from launch import Mpi

PROGRAMS = "munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel"
CONFIGURATION = """ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
InactiveLimit=0
KillWait=1
SchedulerParameters=sched_interval=1,batch_sched_delay=0
PropagateResourceLimits=NONE
NodeName={host} NodeAddr=127.0.0.1 CPUs=64 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE OverSubscribe=FORCE:4 State=UP
"""


class Unavailable(Exception):
    """Slurm cannot be started here; the text says why."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Slurm:
    def __init__(self, folder):
        missing = [name for name in PROGRAMS if not find(name)]
        if missing or os.geteuid() != 0:
            raise Unavailable(
                f"Slurm needs root and its programs; {', '.join(missing) or 'root'} is not there "
                "(slurmctld, slurmd, slurm-client, munge)"
            )
        self.folder, self.processes = pathlib.Path(folder), []
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o755)
        host = socket.gethostname().split(".")[0]
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=host, folder=folder, controller=free_port(), daemon=free_port()
            )
        )
        (self.folder / "cgroup.conf").write_text("")
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SLURM_", "PMI", "OMPI_"))
        }
        self.environment["SLURM_CONF"] = str(self.folder / "slurm.conf")
        try:
            self.before = self.with_pmix()
            self.start(host)
        except BaseException:
            self.close()
            raise

    def with_pmix(self):
        """Words in front of Slurm's programs. Its plugin for PMIx opens libpmix.so in Debian's
        folder, a name that is there with the package for developers only: in a mount namespace of
        its own it is there, too."""
        folder = next(pathlib.Path("/usr/lib").glob("*/pmix2/lib"), None)
        if folder is None or (folder / "libpmix.so").exists() or not find("unshare"):
            return []
        copy = self.folder / "pmix"
        shutil.copytree(folder, copy, symlinks=True)
        (copy / "libpmix.so").symlink_to("libpmix.so.2")
        holder = subprocess.Popen(
            [
                "unshare",
                "--mount",
                "sh",
                "-c",
                'mount --bind "$0" "$1" && echo ready && exec cat >/dev/null',
                copy,
                folder,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.processes.append(holder)
        if holder.stdout.readline() != "ready\n":
            raise Unavailable("no mount namespace for libpmix.so")
        return ["nsenter", "-t", str(holder.pid), "--mount", "--"]

    def start(self, host):
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        names = [
            f"--{name}={self.folder}/munge.{end}"
            for name, end in (
                ("key-file", "key"),
                ("socket", "socket"),
                ("pid-file", "pid"),
                ("seed-file", "seed"),
                ("log-file", "log"),
            )
        ]
        self.run("munged", "--foreground", "--force", *names)
        self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.run("slurmctld", "-D", "-f", self.environment["SLURM_CONF"])
        self.run("slurmd", "-D", "-f", self.environment["SLURM_CONF"], "-N", host)
        self.wait_for(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"), "slurmctld and slurmd")

    def run(self, name, *words):
        log = open(self.folder / f"{name}.out", "wb")
        with log:
            self.processes.append(
                subprocess.Popen(
                    [*self.before, find(name), *words],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def ask(self, *words):
        return subprocess.run(
            [*self.before, *map(str, words)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout

    def wait_for(self, condition, what, limit=60):
        end = time.monotonic() + limit
        while not condition():
            if time.monotonic() > end or any(
                process.poll() is not None for process in self.processes
            ):
                said = [
                    line
                    for path in self.folder.glob("*.out")
                    for line in path.read_text().splitlines()
                    if "error" in line or "fatal" in line
                ]
                raise Unavailable(f"{what} did not start: {'; '.join(said[-3:])}")
            time.sleep(0.1)

    def mpi(self, mpi):
        """The same MPI started by srun, with what it understands;
        an Unavailable where Slurm has no such plugin."""
        plugin = "pmix" if "openmpi" in mpi.name else "pmi2"
        done = subprocess.run(
            [*self.before, "srun", f"--mpi={plugin}", "-n", "1", "true"],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode != 0:
            raise Unavailable(f"srun --mpi={plugin}: {' '.join(done.stderr.split())}")
        return Mpi(
            mpi.name,
            "srun",
            mpi.library,
            [f"--mpi={plugin}", "--kill-on-bad-exit"],
            mpi.python,
            self.before,
        )

    def close(self):
        for process in reversed(self.processes):  # slurmd first
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def find(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
