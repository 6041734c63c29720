package launch

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"

	"github.com/goccl/goccl/internal/jsonfloat"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/launcher"
	"github.com/goccl/goccl/transport/shm"
)

// memory is the memory that ranks share.
var memory = launcher.MemoryOf(shm.OpenFlight, shm.OpenNodeFlight, shm.RemoveLeftovers)

// A process that is the keeper of a job, or is about to become a rank, does nothing else.
func init() { launcher.Reexecuted(memory) }

// IsRank reports whether a launcher has started this process as a rank of a job: Job.Run, goccl
// run, torchrun, mpirun, mpiexec or srun, as dist.IsLaunched does. It may be called at any time.
func IsRank() bool {
	j, err := launchenv.Detect(os.Getenv)
	return err == nil && j != nil
}

// Return gives v, encoded as JSON, to the Job.Run that has started this rank, which returns it as
// Rank.Value if the process ends after that.
//
// A later value replaces it. `goccl run --report` shows it too. Other launchers do not get it,
// which is no error. Infinities and NaN, which JSON does not have, are the strings "Infinity",
// "-Infinity" and "NaN". It returns an error if v cannot be encoded, or if the launcher's file
// (GOCCL_RESULT_FILE) cannot be written.
func Return(v any) error {
	value, err := jsonfloat.Encode(v)
	if err == nil {
		err = launchenv.SendValue(os.Getenv, value)
	}
	if err != nil {
		return fmt.Errorf("launch: the value of this rank: %w", err)
	}
	return nil
}

// mayStart returns the reason why this process must not start ranks.
func mayStart() error {
	j, err := launchenv.Detect(os.Getenv)
	switch {
	case err != nil:
		return fmt.Errorf("launch: %w", err)
	case j != nil:
		return fmt.Errorf("launch: %w: %v; ask launch.IsRank before Run, and do the work of a rank where it returns true", ErrIsRank, j)
	case initializing():
		return fmt.Errorf("launch: %w, from an init function or for a package variable, which every rank would do again: call Run from main", ErrInit)
	}
	return nil
}

// initializing reports whether the program's packages are being initialized: the first goroutine,
// which then calls main, is in one of their init functions.
func initializing() bool {
	stacks := make([]byte, 1<<20) // the caller's, and then the first goroutine's
	stacks = stacks[:runtime.Stack(stacks, true)]
	all := launchenv.ParseStacks(string(stacks))
	i := slices.IndexFunc(all, func(g launchenv.Goroutine) bool { return g.Number == 1 })
	if i < 0 {
		return false
	}
	return slices.ContainsFunc(all[i].Frames, func(f launchenv.Frame) bool { return initFunction.MatchString(f.Function) })
}

// initFunction matches the names of init functions, and of the one that initializes the variables
// of a package. Functions without a name that those have made, which main may call later, are not
// matched.
var initFunction = regexp.MustCompile(`^(?:.*/)?[^./]*\.init(\.\d+)?$`)
