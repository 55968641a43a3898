"""Identify the process that runs a trial, and check whether it has ended."""

import os
import secrets
import socket

# Different for every process: process ids are reused, for example by the first process of every
# container.
_TOKEN = secrets.token_hex(4)


def this_process() -> str:
    """Return a unique name of this process: host:pid:token."""
    return f"{socket.gethostname()}:{os.getpid()}:{_TOKEN}"


def has_ended(process: str) -> bool:
    """Return whether a process of this host has ended; False for other hosts."""
    host, pid, token = process.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    if int(pid) == os.getpid():
        return token != _TOKEN
    if os.name != "posix":  # elsewhere, signal 0 is not a harmless test
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is running as another user
        return False
    return False
