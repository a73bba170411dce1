"""So much work at a time, and no more: whoever comes when all places are taken is asked to come again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")

RETRY_AFTER = 1  # seconds


class BusyError(Exception):
    """All places are taken."""


class Jobs:
    """Places for work; it is done one after the other, in threads of its own."""

    def __init__(self, most: int, threads: int = 1) -> None:
        self.most = most
        self._taken = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="tusk-serve")

    @property
    def taken(self) -> int:
        return self._taken

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of the places for the time of a block. The event loop's thread alone comes here."""
        if self._taken >= self.most:
            raise BusyError
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    async def run(self, work: Callable[[], Result]) -> Result:
        """In the thread; whoever calls holds a place."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """What has begun is finished; what waits is not begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)
