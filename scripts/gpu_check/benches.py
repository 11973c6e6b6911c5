"""Runs the benchmarks of a build, whose tables compare figures with targets; for rtm, also tests that all devices compute the same bits."""


def transfers(check):
    check.bench("transfers", "transfers", 240, "--repeats", "5", needs_gpu=True)
    if check.gpus > 1:
        check.bench("transfers without peers", "transfers", 100, "--repeats", "5", environment=check.without_peers(2),
                    needs_gpu=True)
    check.bench("both ways at once", "two-way", 60, "--repeats", check.choose("9", "1"), environment=check.on(1))
    # Pinned memory for the data of the largest array.
    check.bench("data larger than device memory", "larger", 200, "--repeats", check.choose("3", "1"), "--memory",
                check.choose("8192", "64"), "--phase", check.choose("1000", "20"), environment={**check.on(1), "HPE_PINNED_MEMORY": "40G"})
    check.bench("throughput against size", "transfer-sweep", 200, "--repeats", check.choose("3", "1"), "--largest",
                check.choose("1G", "256K"), environment=check.on(min(check.gpus, 2)))


def rtm(check):
    everywhere = check.on(check.gpus)
    if check.gpus > 1:
        check.tests(f"the same waves and images on {check.gpus}", 200, everywhere, "rtm-tests",
                    check.choose("Split*:WaveField*", "Split.ThinVolume:WaveField*"))
    if check.rehearse:
        check.step("a migration", 200, everywhere, check.bin("hpe"), "rtm", "60x1x40", "--shots", "1",
                   "--output", check.out / "migration")
    check.bench("wave step", "rtm-step", 100, "--repeats", "5", needs_gpu=True)
    check.bench("shot", "rtm-shot", 60, "--only-devices", "--repeats", "3", needs_gpu=True)
    check.bench("wave steps through hpe", "rtm", 260, "--repeats", "5", needs_gpu=True)
    check.bench("orders and cuts", "wave", 120, "--repeats", "5", needs_gpu=True)
    check.tests("waves of all orders", 60, everywhere, "fdtd-tests", check.choose("*", "Boxes*:Field.SmallGrids*"))
    for n in check.counts:
        check.step(f"a migration on {n}", 60, check.on(n), check.bin("hpe"), "rtm", "--output", check.out / f"migration-{n}",
                   needs_gpu=True)


def workloads(check):
    check.bench("scan", "scan", 120, "--repeats", "3", needs_gpu=True)
    check.bench("sort", "sort", 100, "--repeats", "3", needs_gpu=True)
    check.bench("Fourier transforms", "fft", 150, "--repeats", "3", needs_gpu=True)
    check.bench("gather and scatter", "gather", 100, "--repeats", "3", needs_gpu=True)
    check.bench("sparse matrices, graphs, hash tables", "sparse", 100, "--repeats", "3", needs_gpu=True)
    check.bench("model of gather and scatter", "gather", 60, "--model", "--repeats", "3", needs_gpu=True)
    if check.rehearse:
        check.bench("scan alone, small", "workloads", 200, "--only", "scan", "--repeats", "1", environment=check.on(2))
    else:
        check.bench("speed-up over one", "workloads", 200, "--repeats", "3", "--charts",
                    check.log("speed-up over one", "charts.json"))


def remote(check):
    check.bench("far memory", "remote", 240, "--repeats", check.choose("5", "1"), "--charts",
                check.log("far memory", "charts.json"), *check.choose([], ["--only", "H2"]), environment=check.on(min(check.gpus, 2)))
