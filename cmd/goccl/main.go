package main

import (
	// The algorithms that a configuration can name.
	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/cmd/goccl/tool"
	// Ranks that mpirun, mpiexec and srun start, through the installed MPI.
	_ "github.com/goccl/goccl/transport/mpi"
	// Certificates between launchers of several nodes.
	_ "github.com/goccl/goccl/transport/tcp/tls"
)

func main() { tool.Main() }
