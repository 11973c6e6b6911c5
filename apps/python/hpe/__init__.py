"""hpe: NumPy arrays that Python code and the kernels of all devices share.

    import hpe
    a = hpe.zeros((1000, 1000), "float32")     # a numpy.ndarray
    a += 1                                     # Python code
    kernel = hpe.Kernel(source, "scale")       # CUDA C++ or PTX
    kernel(1000, 256, (a, a.size))             # returns at once; a moves to the device
    print(a.sum())                             # waits for the kernel

The environment variable HPE_DEVICES chooses the devices, for example soft:2 for two devices that need no GPU. `hpe run` and
`python -m hpe run` start unchanged CUDA programs, which need not import hpe.
"""

from . import fft, rtm
from .algorithms import cumsum, sort
from .arrays import Info, advise, array, asarray, describe, empty, full, info, is_hpe, migrate, prefetch, wait, zeros
from .devices import Device, current_device, device, device_count, devices, synchronize
from .exchange import DeviceView, device_view, view
from .kernels import CompileError, Kernel
from .library import Error, OutOfMemoryError
from .library import version as __version__
from .profiles import Profile, profile

__all__ = [
    "CompileError", "Device", "DeviceView", "Error", "Info", "Kernel", "OutOfMemoryError", "Profile", "advise", "array", "asarray", "cumsum",
    "current_device", "describe", "device", "device_count", "device_view", "devices", "empty", "fft", "full", "info", "is_hpe", "migrate",
    "prefetch", "profile", "rtm", "sort", "synchronize", "view", "wait", "zeros", "__version__",
]
