"""What a machine needs to run nodes, and what to do if it is missing."""

import os
import shutil
import subprocess
import sys
import tempfile

_PACKAGES = {"ip": "iproute2", "nft": "nftables", "gcc": "gcc", "unshare": "util-linux"}

# Operations that containers and hardened kernels forbid, tried where nothing remains.
_TRIAL = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/lower" "$1/upper" "$1/work" "$1/merged"
mount -t overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" overlay "$1/merged"
ip link add trial-bridge type bridge
ip link add trial-port type veth peer name trial-end
nft add table ip trial
mount -t proc proc /proc
"""


def lacking() -> str | None:
    """Why this machine cannot run a node, as a sentence for its owner; None if it can."""
    if not sys.platform.startswith("linux"):
        return "a node needs Linux"
    if os.geteuid() != 0:
        return "a node needs root, for namespaces, mounts and cgroups of its own"
    missing = {package for tool, package in _PACKAGES.items() if shutil.which(tool) is None}
    if missing:
        packages = " ".join(sorted(missing))
        return f"a node needs programs that are not there. On Debian: apt-get install {packages}"
    with tempfile.TemporaryDirectory() as scratch:
        command = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", _TRIAL, "sh", scratch]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"a node needs namespaces and mounts that are refused here: {done.stderr.strip()}"
    return None
