#pragma once

/// The command `hpe fft`: Fourier transforms over all devices. argv[0] is the command's name; options follow. Returns
/// the exit status: 0 on success, 1 if the run failed or the result is not exact enough, 2 if the request is invalid.
int fft_main(int argc, char** argv);
