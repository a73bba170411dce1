"""Something that never comes back to Python, as an operation of torch that takes an hour: run by tests as a process."""

import ctypes


def stuck() -> None:
    """Wait without end for a lock that this thread has itself; signals do not end it, and other threads go on."""
    library = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(64)
    library.pthread_mutex_init(mutex, None)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)
