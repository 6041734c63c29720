package tcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/mesh"
)

func init() {
	transport.Register(transport.Provider{Name: Name, Detect: detect, Join: join, Leave: leave})
}

// detect is the provider's Detect: the transport is for processes that find rank 0 by variables.
// Unasked, it connects only those that have no memory in common.
func detect(j *transport.Job) (auto bool, err error) {
	if !j.Launched {
		return false, &transport.MissingConfigurationError{
			Missing: []string{"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"},
			Message: fmt.Sprintf("transport %q connects processes, and no launcher started this one as one of several ranks: start the program with torchrun or goccl run -n %d, "+
				"or set MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, or use local, or auto, between goroutines", Name, max(j.Size, 2)),
		}
	}
	_, err = mesh.FromEnvironment(os.Getenv, j)
	return err == nil && (j.Apart != "" || runtime.GOOS != "linux"), err
}

// connected is this process, once it has joined.
var connected struct {
	sync.Mutex
	*process
}

// join is the provider's Join. The connections remain until leave, or until they cannot be used.
func join(ctx context.Context, j *transport.Job) ([]transport.Endpoint, error) {
	connected.Lock()
	defer connected.Unlock()
	isNew := connected.process == nil
	if isNew {
		p, err := connect(ctx, j)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Name, err)
		}
		connected.process = p
	}

	ep, err := connected.JoinWorld(ctx, j.Attempt)
	if err == nil {
		return []transport.Endpoint{ep}, nil
	}
	if isNew {
		ctx, cancel := context.WithTimeout(context.Background(), failedLeaveTime)
		defer cancel()
		err = errors.Join(err, leaveLocked(ctx))
	}
	return nil, err
}

// failedLeaveTime bounds how long a process that has not joined waits for the others to leave.
const failedLeaveTime = 300 * time.Millisecond

// connect connects this process with all others.
func connect(ctx context.Context, j *transport.Job) (*process, error) {
	c, err := mesh.FromEnvironment(os.Getenv, j)
	if err != nil {
		return nil, err
	}
	c.Build, _ = launchenv.Build() // "" where a process does not see its file
	m, err := mesh.Connect(ctx, c)
	if err != nil {
		return nil, err
	}
	p, err := newProcess(connections{rank: j.Rank, node: c.Node, conns: m.Conns, pids: m.PIDs})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return p, nil
}

// leave is the provider's Leave: it closes the connections.
func leave(ctx context.Context) error {
	connected.Lock()
	defer connected.Unlock()
	return leaveLocked(ctx)
}

// leaveLocked is leave for callers that hold connected.
func leaveLocked(ctx context.Context) error {
	p := connected.process
	connected.process = nil
	if p == nil {
		return nil
	}
	return p.leave(ctx)
}
