"""Which process has a trial, and whether it still lives."""

import os
import secrets
import socket

# Drawn anew by every process: a process that was killed may have had the number of this one, as the first in a container has.
_LIFE = secrets.token_hex(4)


def whoami() -> str:
    """This process, among all that ever worked on a study: host:number:life."""
    return f"{socket.gethostname()}:{os.getpid()}:{_LIFE}"


def is_dead(worker: str) -> bool:
    """Whether a process is known to have ended: one of this host, whose number is free, or is this one's."""
    host, number, life = worker.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    if int(number) == os.getpid():
        return life != _LIFE
    if os.name != "posix":  # elsewhere signal 0 is no question
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it lives, and is somebody else's
        return False
    return False
