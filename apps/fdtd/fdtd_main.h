#pragma once

/// The command `hpe wave`: a wave stencil on several devices. argv[0] is the command's name; options follow. Returns
/// the exit status: 0 on success, 1 if the run or its check failed, 2 if the request is invalid.
int fdtd_main(int argc, char** argv);
