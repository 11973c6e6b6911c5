"""Runs the test programs of a build on one GPU and on several GPUs."""

import re


def contract(check):
    everywhere = check.on(check.gpus)
    check.step("list of the devices", 60, everywhere, check.bin("hpe"), "info")
    check.tests("the interface of devices", 240, {}, "device-test",
                check.choose("cuda/*:gpu*:-*a_wild*", "soft/contract.*/soft_1"))
    check.tests("a broken context", 60, {}, "device-test", "gpu*a_wild*", needs_gpu=True)
    check.tests("the interface without peers", 120, {"HPE_CUDA_PEERS": "off"}, "device-test", "cuda/*/cuda", needs_gpu=True)
    for n in check.counts:
        # Some tests of coherence need two devices.
        names = "*" if n > 1 else "coherence*:Elements*"
        check.tests(f"coherence on {n}", 120, check.on(n), "test-core", check.choose(names, "coherence.New*"))
        if n > 1:
            check.tests(f"coherence on {n} without peers", 120, check.without_peers(n), "test-core",
                        check.choose("*", "coherence.Migration*"))
    for kind in ("static", "shared"):
        program = f"test-launch-{kind}"
        if not check.bin(program).exists():
            continue
        check.tests(f"launches of {kind}", 120, everywhere, program, "-ZLost*")
        check.tests(f"lost by a launch of {kind}", 60, {"HPE_DEVICES": "cuda", "HPE_LOG": "silent"}, program, "ZLost*",
                    needs_gpu=True)
    check.tests("kernels", 120, everywhere, "kernels-tests", check.choose("OnDevices*", "OnDevices.Keep*"))


def stress(check):
    settings = {"HPE_LOG": "silent", "HPE_STRESS_SECONDS": check.choose("20", "1")}
    everywhere = check.on(check.gpus)
    check.tests("stress", 110, {**everywhere, **settings}, "test-stress")
    if check.gpus > 1:
        check.tests("stress without peers", 110, {**check.without_peers(check.gpus), **settings}, "test-stress")
    small = {"HPE_BLOCK_SIZE": "4k", "HPE_PREFETCH_WINDOW": "64k", "HPE_ROLLING_WINDOW": "32k"}
    check.tests("stress, small blocks", 110, {**everywhere, **settings, **small}, "test-stress")
    little = {"HPE_DEVICE_MEMORY": "8M"}  # so little that hpe must evict data all the time
    check.tests("stress, little device memory", 110, {**everywhere, **settings, **little}, "test-stress")
    check.tests("data larger than device memory", 110, everywhere, "test-larger", check.choose("*", "larger.NewMemory*"))
    check.tests("coherence with little pinned memory", 110, {**everywhere, "HPE_PINNED_MEMORY": "16M"}, "test-core",
                check.choose("coherence*:Elements*", "coherence.New*"))


def memcheck(check):
    sanitizer = check.tool("compute-sanitizer")
    if not sanitizer and not check.rehearse:
        check.note("compute-sanitizer", "not run: compute-sanitizer is not installed", 0, 1)
        return
    # Without reports of API errors, because hpe also looks up driver functions that may not exist.
    watched = check.choose([sanitizer, "--report-api-errors", "no", "--error-exitcode", "9"], [])
    one = check.family
    of_the_contract = ":".join(f"{one}/contract.{name}*/{one}_1" for name in ("every_tile", "parameters", "uploaded_bytes"))
    for name, program, names in (("kernels of the contract", "device-test", of_the_contract),
                                 ("hpe's own kernels", "kernels-tests", "OnDevices.Tiles*:OnDevices.Keep*"),
                                 ("coherence", "test-core", "coherence.NewMemory*:coherence.AHostAccess*")):
        check.step(name, 200, check.on(1), *watched, check.bin(program), f"--gtest_filter={names}")


def mpi(check):
    if not check.bin("hpe-bench-mpi").exists() or not check.tool("mpirun"):
        check.note("messages", "not run: mpirun is not installed, or hpe was built without MPI", 0, 1)
        return
    settings = {**check.on(check.gpus), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def ranks(name, limit, count, names, environment=None, options=()):
        """Runs ranks. Returns whether MPI could not create windows."""
        ran = check.step(name, limit, {**settings, **(environment or {})}, *check.mpirun(count, *options), check.bin("test-mpi"),
                         f"--gtest_filter={names}")
        return bool(re.search("SKIPPED.*one_sided", ran.output))

    for count in check.choose((2, 3, 4), (2,)):
        # Open MPI may offer windows only to programs without threads, by a component that Debian disables (docs/mpi.md).
        if not ranks(f"conformance of {count} ranks", 150, count, check.choose("*", "point_to_point.*:one_sided.P*")):
            continue
        if ranks(f"windows of {count} ranks, no threads", 60, count, "one_sided*", {"HPE_TEST_ONE_THREAD": "1"},
                 ("--mca", "osc", "^ucx")):
            check.steps.pop()
            check.note(f"windows of {count} ranks",
                       "NOT TESTED: the MPI library of this machine cannot create windows, not even of ordinary memory")
    for way, direct in (("in chunks", "0"), ("directly", "2k")):
        ranks(f"all messages {way}", 120, 2, check.choose("-one_sided*:coherence.TheWrappersStage*", "point_to_point.*"),
              {"HPE_MPI_LARGE": "2k", "HPE_MPI_DIRECT": direct})
    check.bench("messages", "mpi", 240, "--repeats", check.choose("5", "1"), "--to", check.choose("268435456", "8"),
                "--charts", check.log("messages", "charts.json"), environment=settings)
