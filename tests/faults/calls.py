"""The calls of a process and its children to the kernel that write, seen one by one before they are carried out.

A filter of the kernel (seccomp, user notification) hands them to whoever holds its listener, who lets each go on or
answers with an error in its place. So it does not matter which library writes, in which language, thread or process;
what a library writes through memory that it has mapped is seen where it makes the file larger, not byte by byte.
Linux on x86-64 alone, from version 5.19 on; no rights are needed.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import struct
import sys
from dataclasses import dataclass

WRITES = {"write": 1, "pwrite64": 18, "writev": 20, "pwritev": 296, "pwritev2": 328, "sendfile": 40}
WRITES |= {"copy_file_range": 326, "fsync": 74, "fdatasync": 75, "ftruncate": 77, "fallocate": 285}  # on a descriptor
OPENS = {"open": (2, 1), "openat": (257, 2)}  # and which argument holds the flags
PATHS = {"creat": (85, None, 0), "open": (2, None, 0), "openat": (257, 0, 1)}  # number, arguments of folder and path
PATHS |= {"mkdir": (83, None, 0), "mkdirat": (258, 0, 1), "unlink": (87, None, 0), "unlinkat": (263, 0, 1)}
PATHS |= {"rmdir": (84, None, 0), "rename": (82, None, 1), "renameat": (264, 2, 3), "renameat2": (316, 2, 3)}
PATHS |= {"truncate": (76, None, 0), "link": (86, None, 1), "linkat": (265, 2, 3), "symlink": (88, None, 1)}
REMOVES = frozenset({"unlink", "unlinkat", "rmdir"})
NAMES = {number: name for name, number in WRITES.items()} | {entry[0]: name for name, entry in PATHS.items()}
FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_SECCOMP, _PRCTL_NO_NEW_PRIVS = 317, 38
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE, _ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_AT_FDCWD = -100


def available() -> bool:
    """Whether this system has it: a process of our own tries."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    child = os.fork()
    if child == 0:
        try:
            install()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


@dataclass(frozen=True)
class Call:
    """A call that waits for its answer: its name, the path that it is about, the thread that makes it."""

    name: str
    path: str
    thread: int
    number: int


def install() -> int:
    """The descriptor of the listener: from now on the writes of this process and of its children wait for answers."""
    libc = ctypes.CDLL(None, use_errno=True)
    program = _program()
    filters = ctypes.create_string_buffer(program)
    described = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(filters)))
    if libc.prctl(_PRCTL_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    listener = libc.syscall(_SECCOMP, 1, _NEW_LISTENER | _WAIT_KILLABLE, described)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return int(listener)


def receive(listener: int) -> Call | None:
    """The next call that waits; None where its process has gone meanwhile."""
    notice = bytearray(_NOTICE.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, notice)
    except OSError:
        return None
    number, thread, _, which, _, _, *given = _NOTICE.unpack(notice)
    name = NAMES[which]
    try:
        path = os.readlink(f"/proc/{thread}/fd/{given[0]}") if name in WRITES else _path(thread, name, given)
    except OSError:
        path = ""
    return Call(name, path, thread, number)


def answer(listener: int, call: Call, error: int = 0) -> None:
    """Let a call go on, or fail by an error's number."""
    try:
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(call.number, 0, -error, 0 if error else 1))
    except OSError:
        return  # its process has gone


def _path(thread: int, name: str, given: list[int]) -> str:
    _, folder, place = PATHS[name]
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
        memory.seek(given[place])
        path = os.fsdecode(memory.read(4096).split(b"\0")[0])
    if path.startswith("/"):
        return path
    within = _AT_FDCWD if folder is None else ctypes.c_int(given[folder] & 0xFFFFFFFF).value
    start = os.readlink(f"/proc/{thread}/cwd" if within == _AT_FDCWD else f"/proc/{thread}/fd/{within}")
    return os.path.normpath(os.path.join(start, path))


def _program() -> bytes:
    """The filter: calls that write wait, files opened for reading and all other calls go on."""
    number = struct.pack("=HBBI", 0x20, 0, 0, 0)  # load the number of the call
    allow, notify = struct.pack("=HBBI", 0x06, 0, 0, _ALLOW), struct.pack("=HBBI", 0x06, 0, 0, _NOTIFY)
    code = number
    for which, place in OPENS.values():
        code += struct.pack("=HBBI", 0x15, 0, 4, which)  # another call: over these
        code += struct.pack("=HBBI", 0x20, 0, 0, 16 + 8 * place)  # its flags
        code += struct.pack("=HBBI", 0x45, 0, 1, FOR_WRITING) + notify + allow
    for which in NAMES:
        if which not in [entry[0] for entry in OPENS.values()]:
            code += struct.pack("=HBBI", 0x15, 0, 1, which) + notify
    return code + allow
