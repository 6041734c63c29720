package dist_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// An outsider's transports, registered as outsiders register theirs: "faraway" connects ranks on
// several nodes where its variable FARAWAY is set, "shapes" goroutines as its variable says.
func init() {
	transport.Register(transport.Provider{Name: "faraway", Detect: detectFaraway, Join: joinFaraway})
	transport.Register(transport.Provider{Name: "shapes", Detect: detectShapes, Join: joinShapes})
}

// distance is where the ranks of faraway meet.
var distance struct {
	sync.Mutex
	jobs []transport.Job // of this process
	meet func(rank int) (transport.Endpoint, error)
}

func detectFaraway(j *transport.Job) (auto bool, err error) {
	switch {
	case os.Getenv("FARAWAY") == "":
		return false, &transport.MissingConfigurationError{Missing: []string{"FARAWAY"}, Message: "FARAWAY is not set"}
	case !j.Launched:
		return false, &transport.NotAvailableError{Transport: "faraway", Reason: "it connects processes"}
	}
	return j.Apart != "", nil
}

func joinFaraway(_ context.Context, j *transport.Job) ([]transport.Endpoint, error) {
	distance.Lock()
	distance.jobs = append(distance.jobs, *j)
	meet := distance.meet
	distance.Unlock()
	ep, err := meet(j.Rank)
	return []transport.Endpoint{ep}, err
}

func detectShapes(j *transport.Job) (auto bool, err error) {
	if j.Launched {
		return false, &transport.NotAvailableError{Transport: "shapes", Reason: "it connects goroutines"}
	}
	return false, nil
}

func joinShapes(ctx context.Context, j *transport.Job) ([]transport.Endpoint, error) {
	switch os.Getenv("SHAPES") {
	case "broken":
		return nil, errors.New("the medium is on fire")
	case "few":
		return shm.NewHeap(1, shm.DefaultGeometry(1))
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	eps, err := shm.NewHeap(j.Size, shm.DefaultGeometry(j.Size))
	if os.Getenv("SHAPES") == "unseated" && err == nil {
		eps[2] = unseated{eps[2]}
	}
	return eps, err
}

// unseated is an endpoint whose rank does not come to the groups that it is a member of.
type unseated struct{ transport.Endpoint }

func (u unseated) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("no room"))
	return u.Endpoint.(transport.Groups).Group(ctx, number, members)
}

// An outsider's transport connects the goroutines of a program that asks for it by name, and auto
// does not choose it.
func TestOutsidersTransport(t *testing.T) {
	sum := func(want string, opts ...dist.InitOption) {
		t.Helper()
		for range 2 {
			require.NoError(t, spawn(t, initialised(func(_ context.Context, rank int) error {
				g, err := dist.Default()
				if err != nil {
					return err
				}
				assert.Equal(t, want, g.Communicator().Transport())
				v := []int{rank}
				err = dist.AllReduce(v, dist.Sum)
				assert.Equal(t, []int{3}, v)
				return err
			}, opts...), dist.WithRanks(3)))
		}
	}
	sum("shm", dist.WithTransport("shapes")) // the name of a heap's endpoints
	sum("shm", dist.WithConfigFile(configFile(t, "transport: shapes")))
	sum("local")
	t.Setenv("GOCCL_TRANSPORT", "shapes")
	sum("shm")
	sum("local", dist.WithTransport("local"))
}

// The error of an outsider's Join is the one of InitProcessGroup on all ranks, which can try again.
func TestOutsidersJoinFails(t *testing.T) {
	for how, text := range map[string]string{
		"broken": "the medium is on fire",
		"few":    `transport "shapes" made 1 endpoints for 3 ranks of this process: this is a defect of the transport`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Setenv("SHAPES", how)
			require.NoError(t, spawn(t, func(context.Context, int) error {
				err := dist.InitProcessGroup("ccl", dist.WithTransport("shapes"))
				var failed *dist.InitializationFailedError
				assert.ErrorAs(t, err, &failed)
				assert.ErrorContains(t, err, text)
				assert.NoError(t, dist.InitProcessGroup("ccl"))
				return dist.DestroyProcessGroup()
			}, dist.WithRanks(3)))
		})
	}
	t.Setenv("SHAPES", "slow")
	err := spawn(t, func(context.Context, int) error {
		return dist.InitProcessGroup("ccl", dist.WithTransport("shapes"), dist.WithTimeout(50*time.Millisecond))
	}, dist.WithRanks(1))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	// The ranks that wait for the last one's Join are told that the context of the job has ended.
	ctx, cancel := context.WithCancel(t.Context())
	err = spawn(t, func(context.Context, int) error {
		time.AfterFunc(time.Millisecond, cancel)
		return dist.InitProcessGroup("ccl", dist.WithTransport("shapes"), dist.WithTimeout(-1))
	}, dist.WithRanks(3), dist.WithSpawnContext(ctx))
	require.ErrorIs(t, err, context.Canceled)
}

// rank 1 of 3, of which 2 are on this node.
var twoNodes = torchrun.with(variables{"LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1"})

// Ranks on several nodes are those of a transport that detects them; without one they are an error
// (TestLauncherErrors).
func TestSeveralNodes(t *testing.T) {
	twoNodes.set(t)
	t.Setenv("FARAWAY", "1")
	require.True(t, dist.IsLaunched())
	// meet is what the processes of the other ranks do.
	meet := func(requested string, others func(c *ccl.Communicator, err error)) (wait func()) {
		cfg, err := config.Default().Resolve(config.Request{Ranks: 3, Transport: requested})
		require.NoError(t, err)
		endpoints, err := shm.NewHeap(3, shm.DefaultGeometry(3))
		require.NoError(t, err)
		distance.jobs, distance.meet = nil, func(rank int) (transport.Endpoint, error) { return endpoints[rank], nil }
		var all sync.WaitGroup
		for _, rank := range []int{0, 2} {
			all.Go(func() {
				c, err := ccl.New(context.Background(), endpoints[rank], ccl.WithSelector(cfg))
				others(c, err)
				if c != nil {
					assert.NoError(t, c.Close())
				}
			})
		}
		return func() { within(t, all.Wait) }
	}
	for _, requested := range []string{"", "faraway"} {
		t.Setenv("GOCCL_TRANSPORT", requested)
		wait := meet(requested, reduce(t))
		require.NoError(t, spawn(t, initialised(func(context.Context, int) error { sum(t); return nil })))
		wait()
		require.Len(t, distance.jobs, 1)
		j := distance.jobs[0]
		require.Positive(t, j.Attempt)
		j.Attempt = 0
		require.Equal(t, transport.Job{
			Size: 3, Launched: true, Rank: 1, Apart: "by LOCAL_WORLD_SIZE=2 only 2 of them are on this node",
			Origin: "this process is rank 1 of 3 by the variables of torchrun (RANK=1, WORLD_SIZE=3)",
		}, j)
	}

	// A rank with a mistake of its own tells the others over that transport.
	t.Setenv("GOCCL_TRANSPORT", "foobar")
	wait := meet("", func(_ *ccl.Communicator, err error) { aborted(t, err, 1, `unknown transport "foobar"`) })
	require.ErrorContains(t, dist.InitProcessGroup("ccl"), `unknown transport "foobar"`)
	wait()
	t.Setenv("GOCCL_TRANSPORT", "")

	distance.meet = func(int) (transport.Endpoint, error) { return nil, errors.New("too far") }
	err := dist.InitProcessGroup("ccl", dist.WithTransport("shm"))
	var unavailable *dist.BackendNotAvailableError
	require.ErrorAs(t, err, &unavailable)
	require.Equal(t, []string{"faraway"}, unavailable.Available)
	require.ErrorContains(t, unavailable, "only 2 of them are on this node; shared memory connects ranks of one node: start all of them on one node, or ")
}

// The name of a transport is judged before the rest of the configuration, which is missing here.
func TestRequestedTransport(t *testing.T) {
	t.Setenv("GOCCL_CONFIG", "missing.yaml")
	for name, c := range map[string]struct {
		as   any
		text string
	}{
		"foobar":  {new(*dist.InvalidBackendError), `environment: GOCCL_TRANSPORT: unknown transport "foobar"; use one of auto, tcp, shm, local, faraway, shapes`},
		"tcp":     {new(*dist.MissingConfigurationError), `environment: GOCCL_TRANSPORT: transport "tcp" connects processes, and no launcher started this one as one of several ranks: `},
		"mpi":     {new(*dist.BackendNotAvailableError), `environment: GOCCL_TRANSPORT: transport "mpi" is not available: this program links no package that provides it; add this line to its imports: _ "github.com/goccl/goccl/transport/mpi" (available: local, shapes)`},
		"faraway": {new(*dist.MissingConfigurationError), "environment: GOCCL_TRANSPORT: FARAWAY is not set"},
		"local":   {new(*dist.ConfigError), "missing.yaml: cannot read the configuration"},
		"":        {new(*dist.ConfigError), "missing.yaml: cannot read the configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOCCL_TRANSPORT", name)
			err := dist.InitProcessGroup("ccl")
			require.ErrorAs(t, err, c.as)
			require.ErrorContains(t, err, `initialization of "ccl" failed: `+c.text)
			err = dist.Spawn(func(context.Context, int) error { panic("started") })
			require.ErrorAs(t, err, c.as)
			require.ErrorContains(t, err, c.text)
			if name == "" {
				return
			}
			t.Setenv("GOCCL_TRANSPORT", "")
			require.ErrorAs(t, dist.InitProcessGroup("ccl", dist.WithTransport(name)), c.as)
			if name != "local" {
				require.ErrorAs(t, dist.InitProcessGroup("ccl", dist.WithConfigFile(configFile(t, "transport: "+name))), c.as)
			}
		})
	}
}

// A transport of the file that cannot be had is an error at its line.
func TestUnavailableTransportOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ccl.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\ndefaults:\n  transport: mpi\n  algorithm: direct\nalgorithms: {direct: {module: direct}}\n"), 0o600))
	err := dist.InitProcessGroup("ccl", dist.WithConfigFile(file))
	unavailable, ok := errors.AsType[*dist.BackendNotAvailableError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "mpi", unavailable.Requested)
	mistake, ok := errors.AsType[*dist.ConfigError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "defaults.transport", mistake.Key)
	require.ErrorContains(t, err, `initialization of "ccl" failed: `+file+`:3:14: defaults.transport: transport "mpi" is not available: `)
}
