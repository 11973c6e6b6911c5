#pragma once

/// The command `hpe fft`: Fourier transforms over all devices. argv[0] is the command's name; options follow. Returns
/// the exit status: 0, 1 when the run failed or the result is not as exact as it has to be, 2 when what was asked for
/// is not possible.
int fft_main(int argc, char** argv);
