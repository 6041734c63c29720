package abi

import (
	"fmt"
	"strconv"

	"github.com/goccl/goccl/transport"
)

// Family is a group of MPI libraries with the same launcher, and the same handles and constants
// unless they have the standard ABI.
type Family int

const (
	// OpenMPI is Open MPI, whose handles are addresses.
	OpenMPI Family = iota + 1
	// MPICH is MPICH and its relatives, whose handles are numbers.
	MPICH
)

// String names the family.
func (f Family) String() string {
	if f == OpenMPI {
		return "Open MPI"
	}
	return "MPICH"
}

// Launcher is what an MPI launcher says about the process.
type Launcher struct {
	Family Family
	Size   int    // number of ranks
	From   string // the variable, such as "PMI_SIZE=4"
}

// launchers are the variables by which launchers are recognised, in order. Slurm's srun starts
// MPICH's programs by PMI, and Open MPI's by PMIx.
var launchers = []struct {
	family     Family
	size, mark string
}{
	{OpenMPI, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"},
	{MPICH, "PMI_SIZE", "PMI_RANK"},
	{OpenMPI, "SLURM_STEP_NUM_TASKS", "PMIX_RANK"},
}

// Launched returns the launcher that started this process. If none did, the error is a
// *transport.MissingConfigurationError. getenv is os.Getenv or a substitute.
func Launched(getenv func(string) string) (*Launcher, error) {
	for _, l := range launchers {
		text := getenv(l.size)
		if text == "" || getenv(l.mark) == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s=%s: the launcher's variable should be a number from 1 on", l.size, text)
		}
		return &Launcher{l.family, n, l.size + "=" + text}, nil
	}
	return nil, &transport.MissingConfigurationError{
		Missing: []string{"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE"},
		Message: "no MPI launcher started this process: start the program with mpirun, mpiexec or srun, " +
			"which set OMPI_COMM_WORLD_SIZE (Open MPI), or PMI_RANK and PMI_SIZE (MPICH)",
	}
}
