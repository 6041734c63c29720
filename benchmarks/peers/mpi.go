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
	command := func(settings ...string) func(ranks int) []string {
		return func(ranks int) []string {
			cores, processors := cores()
			args := append([]string{m.mpirun}, openMPIPlaces(ranks, cores, processors)...)
			if os.Geteuid() == 0 { // as in a container
				args = append(args, "--allow-run-as-root")
			}
			if w.memory != "" { // instead of /dev/shm: it is removed even if the ranks are killed
				args = append(args, "--mca", "btl_vader_backing_directory", w.memory)
			}
			return slices.Concat(args, settings, []string{"-n", strconv.Itoa(ranks), m.program})
		}
	}
	return m.version, []entry{
		{"default", w.launch(command())}, // its session directory is in TMPDIR
		// Messages between processes are copied into and out of shared memory up
		// to the eager limit, 4 KiB by default, and once by the kernel (CMA) beyond
		// it. A system call for each message pays off only for longer ones: with a limit of
		// 256 KiB, 16 KiB between 2 ranks took 1.2 us instead of 4.5, and 64 KiB 2.9
		// instead of 6.4; a higher limit changed little. Without CMA (single copy mechanism
		// "none") 1 MiB and more took 1.1 to 1.7 times as long, with the heap kept.
		// Tried without gain beyond noise: algorithms chosen by hand (coll_tuned's ring,
		// segmented ring, Rabenseifner), coll_sm, which collapses with more ranks than
		// cores, a larger segment, no binding to cores. mpi_yield_when_idle is the default
		// with more ranks than cores.
		{"tuned", w.launch(command("--mca", "btl_vader_eager_limit", "262144", "--mca", "btl_vader_rndv_eager_limit", "262144"), heapKept...)},
	}, nil
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
	command := func(ranks int) []string { return []string{m.mpirun, "-n", strconv.Itoa(ranks), m.program} }
	return m.version, []entry{
		{"default", w.launch(command)},
		// UCX, which Debian builds MPICH on, lets the kernel copy (CMA) from about 8 KiB
		// on. As above, copying twice through shared memory is faster up to 256 KiB:
		// 64 KiB between 2 ranks took 4.9 us instead of 11. Tried without gain beyond
		// noise: no CMA, other transports and MPICH's own shared memory,
		// release-gather collectives, binding to cores. With more ranks than cores
		// MPICH 4.0 collapses (a barrier of 4 ranks on 2 cores takes 12 ms), because it
		// polls without yielding, and MPIR_CVAR_POLLS_BEFORE_YIELD changes
		// nothing with one thread per process: no setting helped.
		{"tuned", w.launch(command, slices.Concat(heapKept, []string{"UCX_RNDV_THRESH=256k"})...)},
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
		says, failed := child{args: []string{mpirun, "--version"}}.output(ctx, 20*time.Second, grace)
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
	if _, err := c.output(ctx, time.Minute, grace); err != nil {
		return "", fmt.Errorf("mpi_allreduce.c does not compile: %s: %w", c, err)
	}
	return program, nil
}
