#pragma once

/// The command `hpe wave`: a wave stencil on several devices. argv[0] is the command's name; options follow. Returns
/// the exit status: 0, 1 when the run failed or its check did, 2 when what was asked for is not possible.
int fdtd_main(int argc, char** argv);
