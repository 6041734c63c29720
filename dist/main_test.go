package dist_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/require"
)

// The tests clear their environment: they may run under a launcher.
func TestMain(m *testing.M) {
	for _, v := range []string{
		"GOCCL_CONFIG", "GOCCL_ALGORITHM", "GOCCL_TRANSPORT", "GOCCL_TIMEOUT", "GOCCL_WORLD_SIZE",
		"GOCCL_SHM_NAME", "GOCCL_SHM_RANK", "GOCCL_SHM_SIZE", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
	} {
		os.Unsetenv(v)
	}
	os.Exit(m.Run())
}

// watchdog bounds everything that may hang.
const watchdog = 30 * time.Second

// worker is what Spawn runs.
type worker = func(ctx context.Context, rank int) error

// spawn is dist.Spawn with a watchdog.
func spawn(t testing.TB, w worker, opts ...dist.SpawnOption) error {
	t.Helper()
	var err error
	within(t, func() { err = dist.Spawn(w, opts...) })
	return err
}

// within runs f in its own goroutine and fails if it hangs.
func within(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(watchdog):
		stacks := make([]byte, 1<<20)
		t.Fatalf("hangs\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// perRank collects one value of every rank.
type perRank[T any] struct {
	mu     sync.Mutex
	values map[int]T
}

func (p *perRank[T]) put(rank int, v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.values == nil {
		p.values = map[int]T{}
	}
	p.values[rank] = v
}

// reason returns why a call was rejected, without what its error says of the call.
func reason(t testing.TB, err error) error {
	t.Helper()
	var call *dist.CallError
	require.ErrorAs(t, err, &call)
	return call.Err
}

// configFile writes a ccl.yaml with the given defaults and returns its path.
func configFile(t testing.TB, defaults string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ccl.yaml")
	text := "version: 1\ndefaults: {" + defaults + "}\n" +
		"algorithms: {direct: {module: direct}, ring: {module: ring}}\n" +
		"rules: [{algorithm: direct}]\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// initialised runs w between InitProcessGroup and DestroyProcessGroup.
func initialised(w worker, opts ...dist.InitOption) worker {
	return func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", opts...); err != nil {
			return err
		}
		if err := w(ctx, rank); err != nil {
			return err
		}
		return dist.DestroyProcessGroup()
	}
}
