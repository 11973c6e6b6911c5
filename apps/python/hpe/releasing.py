"""Gives memory and modules back to hpe without waiting for the kernels that still use them."""

import os
import queue
import threading

from . import library

# What finalizers give back: pairs of a function of hpe and its argument. Finalizers run in any thread at any time, so they only
# call put(), which takes no lock of Python.
_released = queue.SimpleQueue()
_busy = threading.Lock()  # held by a thread that gives something back
_thread = None
MOST_WAITING = 8  # so many may wait for the thread before an allocation gives them back itself


def later(function, argument, process):
    """Calls a function of hpe later, in another thread. process: the process that owns the argument; a child of fork does not."""
    if os.getpid() == process:
        _released.put((function, argument))


def _give_back(function, argument):
    try:
        library.call(function, argument)
    except library.Error:
        pass  # the device was lost, and its memory with it


def _run():
    while True:
        released = _released.get()
        with _busy:
            _give_back(*released)


def start():
    """Starts the thread. To be called before something is allocated that later() gives back."""
    global _thread
    if _thread is None:
        with _busy:
            if _thread is None:
                _thread = threading.Thread(target=_run, name="hpe release", daemon=True)
                _thread.start()


def is_behind():
    """Whether much waits to be given back."""
    return _released.qsize() > MOST_WAITING


def finish():
    """Gives back everything that later() got so far, and waits for the kernels that use it."""
    while True:
        try:
            released = _released.get_nowait()
        except queue.Empty:
            break
        _give_back(*released)
    with _busy:  # the thread may be giving something back
        pass


def _after_fork():
    global _released, _busy
    _released, _busy = queue.SimpleQueue(), threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
