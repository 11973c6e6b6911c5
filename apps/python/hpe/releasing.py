"""Gives memory and modules back to hpe without waiting for the kernels that still use them."""

import os
import queue
import threading

from . import library

# Calls for the thread. Finalizers run in any thread at any time, so they only call put(), which takes no lock of Python.
_calls: queue.SimpleQueue = queue.SimpleQueue()
_thread = None
_starting = threading.Lock()
MOST_WAITING = 8  # if more calls wait, an allocation waits for them


def later(process, function, *arguments):
    """Calls a function of hpe later, in another thread. process: the process that owns the arguments; a child of fork does not."""
    if os.getpid() == process:
        _calls.put(lambda: _give_back(function, *arguments))


def _give_back(function, *arguments):
    try:
        library.call(function, *arguments)
    except library.Error:
        pass  # the device was lost, and its memory with it


def _run():
    while True:
        _calls.get()()


def start():
    """Starts the thread. To be called before something is allocated that later() gives back."""
    global _thread
    if _thread is None:
        with _starting:
            if _thread is None:
                _thread = threading.Thread(target=_run, name="hpe release", daemon=True)
                _thread.start()


def is_behind():
    """Whether many calls wait."""
    return _calls.qsize() > MOST_WAITING


def finish():
    """Waits until everything that later() got so far has been given back, and so for the kernels that use it. The thread must have
    been started."""
    is_done = threading.Event()
    _calls.put(is_done.set)
    is_done.wait()


def _after_fork():
    global _calls, _thread, _starting
    _calls, _thread, _starting = queue.SimpleQueue(), None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
