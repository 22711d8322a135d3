"""Runs the command `axir` in forks of a process that has imported it: a start costs half a second.

`python command_server.py serve SOCKET` listens; `python -I -S command_server.py run SOCKET ARGS...`
runs the command with these arguments, in its own folder, environment and files, and ends as the
command does. Elsewhere: the start of the server (`tests/repository/test_golden.py`), and the
replacement of `axir` by a call of it (`tests/lit.cfg.py`).
"""

from __future__ import annotations

import os
import socket
import sys

# Each run imports this file as well: it must import nothing that takes time.

_LENGTH_BYTES = 8


def run(path: str, arguments: list[str]) -> int:
    """Has the server run the command; returns its exit status."""
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    parts = [str(len(arguments)), os.getcwd(), *arguments, *variables]
    message = "\0".join(parts).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [len(message).to_bytes(_LENGTH_BYTES, "big")], [0, 1, 2])
        connection.sendall(message)
        answer = connection.recv(1)
    return answer[0] if answer else 128  # it was killed


def serve(path: str) -> None:
    """Forks for each command, until the process is killed."""
    import signal

    import axir.cli.opt  # imported once, for all forks; the other verbs by those that need them

    assert axir.cli.opt
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    print("listening", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the exit status of children is not read
    while True:
        connection, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            _answer(connection)
        connection.close()


def _answer(connection: socket.socket) -> None:
    """Runs one command in this process, reports its exit status, and ends."""
    head, files, _, _ = socket.recv_fds(connection, _LENGTH_BYTES, 3)
    size, message = int.from_bytes(head, "big"), b""
    while len(message) < size:
        message += connection.recv(size - len(message))
    count, folder, *rest = message.decode().split("\0")
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(entry.split("=", 1) for entry in rest[int(count) :])
    sys.argv = ["axir", *rest[: int(count)]]
    status = 1
    try:
        from axir.cli import main

        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(bytes([status]))
        os._exit(0)


if __name__ == "__main__":
    verb, place, *given = sys.argv[1:]
    if verb == "serve":
        serve(place)
    else:
        sys.exit(run(place, given))
