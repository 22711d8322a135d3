"""The processes of the libraries, as the process that measures sees them.

Each library has a separate process, so that the threads of one do not disturb the other. The
processes take turns; an idle process sleeps.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

from benchmarks.harness.session import Session, serve

_CONTEXT = multiprocessing.get_context("spawn")
MAX_RESIDENT = 2_000_000_000


class WorkerError(Exception):
    """A program failed in the process of its library, which may have ended, or takes too long."""


class Worker:
    """A process that runs the programs of one library; it begins when it is first needed.

    Args:
        library: The name of the module.
        timeout: Seconds after which a request counts as failed.
        session: Makes, in the process, the object that answers requests, given the name.
    """

    def __init__(
        self, library: str, timeout: float, session: Callable[[str], object] = Session
    ) -> None:
        self.library = library
        self._timeout = timeout
        self._session = session
        self._process: Any = None
        self._connection: Any = None

    def ask(self, method: str, *args: object) -> Any:
        """Returns the result of a method of the process's session.

        Raises:
            WorkerError: If it raises, if the process ends, or if it takes longer than the timeout.
        """
        if self._process is None:
            self._start()
        self._connection.send((method, args))
        return self._reply()

    @property
    def process_id(self) -> int | None:
        """The number of the process; None where none runs."""
        return None if self._process is None else self._process.pid

    def drop(self) -> None:
        """Makes the process forget its program, or ends it where it holds on to much memory."""
        if self._process is not None and self.ask("drop") > MAX_RESIDENT:
            self.close()

    def close(self) -> None:
        """Ends the process; the next request begins another one."""
        if self._process is not None:
            self._connection.close()
            self._process.join(5)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
            self._process = None

    def _start(self) -> None:
        self._connection, theirs = _CONTEXT.Pipe()
        args = (theirs, self.library, self._session)
        self._process = _CONTEXT.Process(target=serve, args=args, daemon=False)
        self._process.start()
        theirs.close()
        self._reply()

    def _reply(self) -> Any:
        try:
            if not self._connection.poll(self._timeout):
                self._kill()
                raise WorkerError(f"no answer within {self._timeout:g} s")
            fine, reply = self._connection.recv()
        except (EOFError, ConnectionResetError) as error:
            self._process.join()
            code = self._process.exitcode
            self._process = None
            raise WorkerError(f"the process of {self.library} ended with code {code}") from error
        if not fine:
            raise WorkerError(reply)
        return reply

    def _kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._process = None
