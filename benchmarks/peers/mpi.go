package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setUpOpenMPI looks for mpicc.openmpi and mpirun.openmpi, Debian's names, and then for
// mpicc and mpirun.
func setUpOpenMPI(ctx context.Context, w workplace) (string, []entry, error) {
	m, err := findMPI(ctx, w, "openmpi", "Open MPI")
	if err != nil {
		return "", nil, err
	}
	rules, err := w.save("allreduce.rules", openMPIRules)
	if err != nil {
		return "", nil, err
	}

	command := func(bound bool, settings ...string) func(ranks int) []string {
		return func(ranks int) []string {
			cores, processors := cores()
			args := append([]string{m.mpirun}, openMPIPlaces(ranks, cores, processors)...)
			if bound {
				args = append(args, openMPIBinding(ranks, cores, processors)...)
			}
			if os.Geteuid() == 0 { // as in a container
				args = append(args, "--allow-run-as-root")
			}
			if w.memory != "" { // instead of /dev/shm: it is removed even if the ranks are killed
				args = append(args, "--mca", "btl_vader_backing_directory", w.memory)
			}
			return slices.Concat(args, settings, []string{"-n", strconv.Itoa(ranks), m.program})
		}
	}
	eager := func(bytes string) []string {
		return []string{
			"--mca", "btl", "self,vader", "--mca", "pml", "ob1", "--mca", "btl_vader_max_inline_send", "4096",
			"--mca", "btl_vader_eager_limit", bytes, "--mca", "btl_vader_rndv_eager_limit", bytes,
			"--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_dynamic_rules_filename", rules,
		}
	}
	return m.version, []entry{
		{"default", w.launch(command(false))}, // its session directory is in TMPDIR
		// Messages between processes are copied into and out of shared memory up
		// to the eager limit, 4 KiB by default, and once by the kernel (CMA) beyond
		// it. A system call for each message pays off only for longer ones: with a limit of
		// 64 KiB, vectors of 16 KiB and 64 KiB between 2 ranks took 3.0 and 11 us instead of
		// 9.9 and 22, with the cores far apart. Vectors of 256 KiB, sent in halves, are
		// faster through the kernel then (29 us, against 40 with a limit of 256 KiB). With
		// the cores close the limit of 256 KiB was the best of an earlier comparison: hence
		// two settings. Without CMA (single copy
		// mechanism "none") 4 MiB and more took 1.4 to 1.8 times as long, and no size
		// less, beyond noise.
		//
		// Fewer transports to poll, and longer inline sends, gain 5 % to 10 % up to 4 KiB.
		// The segmented ring with segments of 1 MiB is 1.4 times as fast as the default
		// algorithm at 16 MiB and 64 MiB.
		//
		// Open MPI binds up to 2 ranks to a core each, and none with more ranks than cores.
		// Binding these as well steadies them: 4 ranks on 2 cores took 4.9 us instead of
		// 8.6 at 4 bytes, 256 instead of 562 at 1 MiB, 7.3 ms instead of 9.0 at 16 MiB.
		//
		// Tried without gain beyond noise: larger fast boxes and an earlier use of them,
		// larger fragments (btl_vader_max_send_size), a larger segment, recursive doubling, ring and
		// Rabenseifner at each size. Worse: coll_sm, with a barrier of half the time, but 1.1 times
		// as long at 4 bytes, 1.5 to 5 times from 16 KiB, and 10 to 40 times with more ranks than
		// cores; mpi_yield_when_idle 0 with more ranks than cores, milliseconds a call (1 is the
		// default then). pml ucx is not available between processes of one machine without a network.
		{"tuned", w.launch(command(true, eager("65536")...), heapKept...)},
		{"eager", w.launch(command(true, eager("262144")...), heapKept...)},
	}, nil
}

// openMPIRules chooses algorithms of Open MPI's all-reduce by the bytes of a vector.
const openMPIRules = `1 # collective
2 # its number: allreduce
1 # size of communicator
2 # from so many ranks
2 # sizes of vectors
0 0 0 0 # from 0 bytes: the default
8388608 5 0 1048576 # from 8 MiB: segmented ring, segments of 1 MiB
`

// openMPIBinding binds each rank to a core, or to a processor with more ranks than cores.
func openMPIBinding(ranks, cores, processors int) []string {
	switch {
	case ranks <= cores:
		return []string{"--bind-to", "core"}
	case ranks <= processors:
		return []string{"--bind-to", "hwthread"}
	}
	return []string{"--map-by", "core", "--bind-to", "core:overload-allowed"}
}

// openMPIPlaces are the options that Open MPI needs for more ranks than cores.
func openMPIPlaces(ranks, cores, processors int) []string {
	switch {
	case ranks <= cores:
		return nil
	case ranks <= processors:
		return []string{"--use-hwthread-cpus"}
	}
	return []string{"--oversubscribe"}
}

// setUpMPICH looks for mpicc.mpich and mpirun.mpich, Debian's names, and then
// for mpicc and mpirun.
func setUpMPICH(ctx context.Context, w workplace) (string, []entry, error) {
	m, err := findMPI(ctx, w, "mpich", "HYDRA")
	if err != nil {
		return "", nil, err
	}

	command := func(bound bool) func(ranks int) []string {
		return func(ranks int) []string {
			args := []string{m.mpirun}
			if cores, _ := cores(); bound && ranks <= cores {
				args = append(args, "-bind-to", "core")
			}
			return append(args, "-n", strconv.Itoa(ranks), m.program)
		}
	}
	return m.version, []entry{
		{"default", w.launch(command(false))},
		// UCX, which Debian builds MPICH on, lets the kernel copy (CMA) from about 8 KiB
		// on. As above, copying twice through shared memory is faster up to 256 KiB:
		// 64 KiB between 2 ranks took 4.9 us instead of 11. MPICH does not bind ranks by
		// default; binding changes nothing on an idle machine with as many cores as ranks.
		//
		// Tried without gain beyond noise: no CMA, other transports (posix, sysv), thresholds of 64 KiB
		// and 128 KiB, no algorithms of the device, no SMP algorithms, release-gather,
		// Rabenseifner, ring. Recursive doubling is 1.2 and 1.4 times as fast at 4 bytes and
		// 1 KiB, still behind Open MPI, and up to 1.6 times as slow from 16 KiB. With more ranks than
		// cores MPICH 4.0 collapses (4 bytes of 4 ranks on 2 cores take 16 ms), because it
		// polls without yielding: no binding, no transport (tcp) and no
		// MPIR_CVAR_POLLS_BEFORE_YIELD helped.
		{"tuned", w.launch(command(true), slices.Concat(heapKept, []string{"UCX_RNDV_THRESH=256k"})...)},
	}, nil
}

// mpi is an installed implementation of MPI, with the program that it has compiled.
type mpi struct{ mpirun, version, program string }

// findMPI looks for an implementation whose mpirun --version contains banner, and compiles the
// program with it.
func findMPI(ctx context.Context, w workplace, name, banner string) (mpi, error) {
	err := fmt.Errorf("mpicc.%s and mpirun.%[1]s are not in PATH, nor are mpicc and mpirun", name)
	for _, suffix := range []string{"." + name, ""} {
		mpicc, noCompiler := exec.LookPath("mpicc" + suffix)
		mpirun, noLauncher := exec.LookPath("mpirun" + suffix)
		if errors.Join(noCompiler, noLauncher) != nil {
			continue
		}

		says, failed := child{args: []string{mpirun, "--version"}}.output(ctx, 20*time.Second, graceTime)
		if failed != nil {
			return mpi{}, fmt.Errorf("%s --version: %w", mpirun, failed)
		}
		if strings.Contains(says, banner) {
			program, err := w.compile(ctx, mpicc, name)
			return mpi{mpirun, versionNumber.FindString(says), program}, err
		}
		err = fmt.Errorf("mpicc.%s and mpirun.%[1]s are not in PATH, and %s belongs to another implementation", name, mpirun)
	}
	return mpi{}, err
}

// compile compiles the program for an implementation of this name.
func (w workplace) compile(ctx context.Context, mpicc, name string) (program string, err error) {
	source, err := w.write("mpi_allreduce.c")
	if err != nil {
		return "", err
	}
	program = filepath.Join(w.dir, "mpi_allreduce."+name)
	c := child{args: []string{mpicc, "-O2", "-o", program, source}}
	if _, err := c.output(ctx, time.Minute, graceTime); err != nil {
		return "", fmt.Errorf("mpi_allreduce.c does not compile: %s: %w", c, err)
	}
	return program, nil
}
