package doctor

import (
	"github.com/goccl/goccl/internal/launchenv"
)

// Launcher returns a finding about the launcher of this process, and its number of ranks,
// 0 without a launcher.
func Launcher(getenv func(string) string) (f Finding, ranks int) {
	job, err := launchenv.Detect(getenv)
	switch {
	case err != nil:
		return ok(PartConfiguration, "launcher", "%v", err).with(Problem, "set or unset the variables that it names: dist fails to initialize with them"), 0
	case job == nil:
		return ok(PartConfiguration, "launcher", "none: ranks are goroutines"), 0
	case job.Apart != "":
		return ok(PartConfiguration, "launcher", "%v, and %s", job, job.Apart).with(Note, "transport tcp connects them, with MASTER_ADDR, MASTER_PORT and a secret, "+
			"which goccl doctor --nnodes tries; or import github.com/goccl/goccl/transport/mpi in the program, which connects them by MPI"), 0
	}
	return ok(PartConfiguration, "launcher", "%v; its job is %s", job, job.Key), job.Size
}
