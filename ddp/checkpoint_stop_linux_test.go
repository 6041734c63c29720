package ddp_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

func init() {
	works["stop in Save"] = stopIn("Save")
	works["stop in Load"] = stopIn("Load")
}

// A process that is stopped while it writes, or reads, is a timeout of the others, who name it.
func TestStoppedInCheckpoint(t *testing.T) {
	for _, operation := range []string{"Save", "Load"} {
		t.Run(operation, func(t *testing.T) {
			t.Setenv("TEST_DDP_DIR", t.TempDir())
			for rank, o := range onProcesses(t, "stop in "+operation, 3) {
				if o.Err != "" {
					t.Errorf("rank %d: %s", rank, o.Err)
				}
			}
		})
	}
}

// stoppingState is a state that stops the process which encodes or decodes it.
type stoppingState struct{}

func (*stoppingState) MarshalJSON() ([]byte, error) { return []byte("1"), stopThis() }
func (*stoppingState) UnmarshalJSON([]byte) error   { return stopThis() }

// pidFile has the process that is about to stop.
func pidFile() string { return filepath.Join(os.Getenv("TEST_DDP_DIR"), "pid") }

func stopThis() error {
	if err := os.WriteFile(pidFile(), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		return err
	}
	continued := make(chan os.Signal, 1) // another thread may take SIGSTOP while this one goes on
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	<-continued
	return nil
}

// stopIn returns a work in which rank 0 is stopped within the operation, until the others have their errors.
func stopIn(operation string) work {
	return func(rank, ranks int, _ *outcome) error {
		r, err := reinitialize()
		if err != nil {
			return err
		}
		path := os.Getenv("TEST_DDP_DIR") + "/c"
		if operation == "Load" {
			if err := r.Save(bg, path, 1); err != nil {
				return err
			}
		}
		state := any(new(int))
		if rank == 0 {
			state = new(stoppingState)
		}
		err = operations(r, path, state)[operation]()
		if call, ok := errors.AsType[*ccl.CallError](err); !ok || call.Line == 0 {
			err = fmt.Errorf("the error does not say where the program called %s: %w", operation, err)
		} else if late, ok := errors.AsType[*dist.TimeoutError](err); rank == 0 || ok && slices.Equal(late.Missing, []int{0}) {
			err = nil // that of the stopped rank is any of those of a group that has failed
		}
		if rank < ranks-1 {
			return err
		}
		return errors.Join(err, continueStopped())
	}
}

// continueStopped continues the process that is stopped.
func continueStopped() error {
	text, err := os.ReadFile(pidFile())
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
