package dist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// variables is an environment.
type variables map[string]string

func (v variables) set(t *testing.T) {
	for name, value := range v {
		t.Setenv(name, value)
	}
}

// with returns v overridden by other.
func (v variables) with(other variables) variables {
	v = maps.Clone(v)
	maps.Copy(v, other)
	return v
}

// The variables of rank 1 of 3.
var (
	ours     = variables{"GOCCL_SHM_NAME": "/train-17", "GOCCL_SHM_RANK": "1", "GOCCL_SHM_SIZE": "3"}
	torchrun = variables{
		"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RESTART_COUNT": "0",
		"RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "3",
	}
	mpirun = variables{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "3", "PMIX_NAMESPACE": "96337921"}
	srun   = variables{"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "2", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_NUM_NODES": "1"}
)

// node plays a node's shared memory: ranks that join under one name meet. This
// process is one of them; goroutines without dist play the other processes.
type node struct {
	mu    sync.Mutex
	meets map[string]*meeting
	names []string    // in the order in which they came
	jobs  []shm.Job   // joined by this process
	next  chan string // the same, for the players of other processes
}

type meeting struct {
	endpoints []transport.Endpoint
	taken     map[int]bool
	all       chan struct{} // closed when all are here
}

func newNode(t *testing.T) *node {
	n := &node{meets: map[string]*meeting{}, next: make(chan string, 100)}
	dist.JoinBy(t, func(ctx context.Context, j shm.Job) (transport.Endpoint, error) {
		n.mu.Lock()
		n.jobs = append(n.jobs, j)
		n.mu.Unlock()
		return n.join(ctx, j)
	})
	return n
}

// join replaces shm.Join on this node.
func (n *node) join(ctx context.Context, j shm.Job) (transport.Endpoint, error) {
	m, err := n.enter(j)
	if err != nil {
		return nil, err
	}
	select {
	case <-m.all:
		return m.endpoints[j.Rank], nil
	case <-ctx.Done():
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	late := &transport.TimeoutError{By: j.Rank}
	for r := range j.Size {
		if !m.taken[r] {
			late.Missing = append(late.Missing, r)
		}
	}
	return nil, late
}

func (n *node) enter(j shm.Job) (*meeting, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.meets[j.Name]
	if m == nil {
		endpoints, err := shm.NewHeap(j.Size, shm.DefaultGeometry(j.Size))
		if err != nil {
			return nil, err
		}
		m = &meeting{endpoints: endpoints, taken: map[int]bool{}, all: make(chan struct{})}
		n.meets[j.Name] = m
		n.names = append(n.names, j.Name)
		n.next <- j.Name
	}
	if m.taken[j.Rank] {
		return nil, fmt.Errorf("rank %d is here already", j.Rank)
	}
	m.taken[j.Rank] = true
	if len(m.taken) == j.Size {
		close(m.all)
	}
	return m, nil
}

// others plays the processes of ranks 0 and 2 of 3 in the job that this process is about to
// join: each runs f with its communicator or the error of joining. wait returns when they
// have ended.
func (n *node) others(t *testing.T, f func(c *ccl.Communicator, err error)) (wait func()) {
	t.Helper()
	cfg, err := config.Find()
	require.NoError(t, err)
	settings, err := cfg.Resolve(config.Request{Ranks: 3})
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		name := <-n.next
		for _, rank := range []int{0, 2} {
			all.Go(func() {
				ep, err := n.join(context.Background(), shm.Job{Name: name, Rank: rank, Size: 3})
				if !assert.NoError(t, err) {
					return
				}
				c, err := ccl.New(context.Background(), ep, ccl.WithSelector(settings))
				f(c, err)
				if c != nil {
					assert.NoError(t, c.Close())
				}
			})
		}
	})
	return func() { within(t, all.Wait) }
}

// reduce is the part of the other ranks in sum.
func reduce(t *testing.T) func(*ccl.Communicator, error) {
	return func(c *ccl.Communicator, err error) {
		if assert.NoError(t, err) {
			v := []int64{int64(c.Rank()) + 1}
			assert.NoError(t, ccl.AllReduce(context.Background(), c, v, v, ccl.Sum))
			assert.Equal(t, []int64{6}, v)
		}
	}
}

// sum is an all-reduce by rank 1; the others run reduce.
func sum(t *testing.T) {
	v := []int64{2}
	assert.NoError(t, dist.AllReduce(v, dist.Sum))
	assert.Equal(t, []int64{6}, v)
}

// A process of a launcher is in groups with others.
func TestLaunchedGroup(t *testing.T) {
	ours.set(t)
	n := newNode(t)
	wait := n.others(t, func(c *ccl.Communicator, err error) {
		if !assert.NoError(t, err) {
			return
		}
		ctx := context.Background()
		g, err := c.NewGroup(ctx, []int{1, 2})
		if assert.NoError(t, err) && g != nil {
			assert.NoError(t, ccl.Broadcast(ctx, g, []int{7}, 1))
			assert.NoError(t, g.Close())
		}
		reduce(t)(c, nil)
	})
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		g, err := dist.NewGroup([]int{1, 2})
		if err != nil {
			return err
		}
		tensor := []int{rank}
		if err := dist.Broadcast(tensor, 2, dist.WithGroup(g)); err != nil {
			return err
		}
		assert.Equal(t, []int{7}, tensor, "from rank 2, which is rank 1 of the group")
		if err := dist.DestroyProcessGroup(dist.WithGroup(g)); err != nil {
			return err
		}
		sum(t)
		return nil
	}))
	wait()
	require.NoError(t, err)
}

// A process of a launcher hosts the launcher's rank, and is it on every goroutine.
func TestLaunchedSpawn(t *testing.T) {
	for launcher, c := range map[string]struct {
		env  variables
		name string // by which the ranks meet, without the number of the rendezvous
	}{
		"goccl run": {ours, "train-17-"},
		"torchrun":  {torchrun, "torchrun-none-127.0.0.1-29500-0-"},
		"Open MPI":  {mpirun, "openmpi-96337921-"},
		"Slurm":     {srun, "slurm-4711-2-0-"},
	} {
		t.Run(launcher, func(t *testing.T) {
			c.env.set(t)
			n := newNode(t)
			workers := 0
			for range 2 { // Spawns
				err := spawn(t, func(ctx context.Context, rank int) error {
					workers++
					assert.Equal(t, 1, rank)
					for range 2 { // groups
						_, err := dist.GetRank()
						assert.ErrorIs(t, err, dist.ErrNotInitialized)
						_, err = dist.GetWorldSize()
						assert.ErrorIs(t, err, dist.ErrNotInitialized)

						wait := n.others(t, reduce(t))
						if err := dist.InitProcessGroup("ccl"); err != nil {
							return err
						}
						for _, where := range []func(func()){now, dist.Go, plain} {
							assert.Equal(t, answer{rank: 1}, in(where, ask))
						}
						size, err := dist.GetWorldSize()
						assert.NoError(t, err)
						assert.Equal(t, 3, size)
						group, err := dist.Default()
						assert.NoError(t, err)
						assert.Equal(t, "shm", group.Communicator().Transport())
						in(plain, func() bool { sum(t); return true })
						wait()
						if err := dist.DestroyProcessGroup(); err != nil {
							return err
						}
					}
					return nil
				}, dist.WithRanks(3))
				require.NoError(t, err)
			}
			require.Equal(t, 2, workers)
			require.Len(t, n.names, 4, "a name for each attempt")
			for _, name := range n.names {
				require.Contains(t, name, c.name)
			}
		})
	}
}

// torch's env:// variables make a job of processes; rank 0 holds the port while they join,
// and a second rank 0 fails.
func TestLaunchedByHand(t *testing.T) {
	held, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	port := held.Addr().(*net.TCPAddr).Port
	by := variables{"WORLD_SIZE": "3", "MASTER_ADDR": "localhost", "MASTER_PORT": fmt.Sprint(port)}

	by.with(variables{"RANK": "0"}).set(t)
	newNode(t)
	within(t, func() {
		require.ErrorContains(t, dist.InitProcessGroup("ccl"), fmt.Sprintf("rank 0 cannot hold MASTER_PORT=%d", port))
	})
	require.NoError(t, held.Close())
	dist.JoinBy(t, func(context.Context, shm.Job) (transport.Endpoint, error) {
		_, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		assert.Error(t, err, "the port is free while the ranks join")
		return nil, errors.New("enough")
	})
	require.ErrorContains(t, dist.InitProcessGroup("ccl"), fmt.Sprintf("enough; MASTER_PORT=%d identifies the job", port))
	again, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	require.NoError(t, err, "the port is held for ever")
	require.NoError(t, again.Close())

	by.with(variables{"RANK": "1"}).set(t)
	n := newNode(t)
	wait := n.others(t, reduce(t))
	within(t, func() { require.NoError(t, dist.InitProcessGroup("ccl")); sum(t) })
	wait()
	require.NoError(t, dist.DestroyProcessGroup())
	require.Contains(t, n.names[0], fmt.Sprintf("env-%d-", port))
}

// The ranks of goccl run join with the secret of their job.
func TestLaunchedWithSecret(t *testing.T) {
	ours.with(variables{"GOCCL_SHM_SECRET": "hush"}).set(t)
	n := newNode(t)
	wait := n.others(t, reduce(t))
	require.NoError(t, dist.InitProcessGroup("ccl"))
	sum(t)
	wait()
	require.NoError(t, dist.DestroyProcessGroup())
	require.Len(t, n.jobs, 1)
	require.Equal(t, "hush", n.jobs[0].Secret)
}

// Without Spawn a process is the launcher's rank.
func TestLaunchedWithoutSpawn(t *testing.T) {
	torchrun.set(t)
	n := newNode(t)
	for range 2 {
		wait := n.others(t, reduce(t))
		within(t, func() {
			require.NoError(t, dist.InitProcessGroup("ccl"))
			require.Equal(t, answer{rank: 1}, in(plain, ask))
			require.EqualError(t, dist.InitProcessGroup("ccl"),
				"dist: default process group has been initialized already on rank 1: call dist.DestroyProcessGroup first")
			sum(t)
		})
		wait()
		require.NoError(t, dist.DestroyProcessGroup())
		require.False(t, dist.IsInitialized())
	}
	require.Len(t, n.names, 2)
	require.NotEqual(t, n.names[0], n.names[1])
}

// If no launcher started several ranks, the process is one rank.
func TestLaunchedAsOneRank(t *testing.T) {
	for name, v := range map[string]variables{
		"mpirun -n 1":        {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"},
		"the shell of batch": {"SLURM_JOB_ID": "17", "SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_NPROCS": "4"},
		"a stray WORLD_SIZE": {"WORLD_SIZE": "4"},
	} {
		t.Run(name, func(t *testing.T) {
			v.set(t)
			var ranks perRank[bool]
			require.NoError(t, spawn(t, initialised(func(_ context.Context, rank int) error {
				ranks.put(rank, true)
				return dist.Barrier()
			}), dist.WithRanks(2)))
			require.Len(t, ranks.values, 2)
			require.NoError(t, dist.InitProcessGroup("ccl"))
			require.Equal(t, answer{}, ask())
			require.NoError(t, dist.DestroyProcessGroup())
		})
	}
}

// goccl run -n 1 is one rank, whatever the number of cores and the program's own number.
func TestLaunchedAlone(t *testing.T) {
	variables{"GOCCL_SHM_NAME": "/train-17", "GOCCL_SHM_RANK": "0", "GOCCL_SHM_SIZE": "1"}.set(t)
	n := newNode(t)
	var ranks perRank[bool]
	require.NoError(t, spawn(t, initialised(func(_ context.Context, rank int) error {
		ranks.put(rank, true)
		v := []int64{2}
		assert.NoError(t, dist.AllReduce(v, dist.Sum))
		assert.Equal(t, []int64{2}, v)
		size, err := dist.GetWorldSize()
		assert.Equal(t, 1, size)
		return err
	})))
	require.Equal(t, map[int]bool{0: true}, ranks.values)
	require.Len(t, n.names, 1)
	const launcher = "this process is rank 0 of 1 by the variables of goccl run (GOCCL_SHM_RANK=0, GOCCL_SHM_SIZE=1)"
	err := dist.Spawn(func(context.Context, int) error { panic("started") }, dist.WithRanks(2))
	require.EqualError(t, err, "dist.WithRanks(2) asks for 2 ranks, but "+launcher+
		"; start 2 processes, or omit dist.WithRanks")
	err = dist.InitProcessGroup("ccl", dist.WithConfigFile(configFile(t, "world_size: 2")))
	require.ErrorContains(t, err, launcher)
}

// IsLaunched is true exactly if Spawn hosts the launcher's one rank.
func TestIsLaunched(t *testing.T) {
	require.False(t, dist.IsLaunched())
	for name, c := range map[string]struct {
		env  variables
		want bool
	}{
		"goccl run":             {ours, true},
		"goccl run -n 1":        {variables{"GOCCL_SHM_NAME": "/x", "GOCCL_SHM_RANK": "0", "GOCCL_SHM_SIZE": "1"}, true},
		"torchrun":              {torchrun, true},
		"Open MPI":              {mpirun, true},
		"Slurm":                 {srun, true},
		"mpirun -n 1":           {mpirun.with(variables{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}), false},
		"a stray variable":      {variables{"WORLD_SIZE": "4"}, false},
		"a contradiction":       {ours.with(variables{"GOCCL_SHM_RANK": "3"}), false},
		"a variable is missing": {variables{"GOCCL_SHM_RANK": "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.env.set(t)
			require.Equal(t, c.want, dist.IsLaunched())
		})
	}
}

// Contradictory variables are an error before anything starts.
func TestLauncherErrors(t *testing.T) {
	texts := golden.Errors(t)
	for name, c := range map[string]struct {
		env  variables
		text string // prefix of the error
		as   any
	}{
		"no name": {variables{"GOCCL_SHM_RANK": "1", "GOCCL_SHM_SIZE": "3"},
			"GOCCL_SHM_NAME is not set: ", new(*dist.MissingConfigurationError)},
		"no address": {variables{"RANK": "0", "WORLD_SIZE": "2"},
			"this process is rank 0 of 2 by the variables of env:// (RANK=0, WORLD_SIZE=2), and MASTER_ADDR and MASTER_PORT are not set: ",
			new(*dist.MissingConfigurationError)},
		"no key": {variables{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"},
			"this process is rank 1 of 3 by the variables of Open MPI (OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=3), but they do not identify the job and its nodes: ",
			new(*dist.MissingConfigurationError)},
		"two nodes": {twoNodes,
			`transport "tcp": this process is rank 1 of 3 by the variables of torchrun (RANK=1, WORLD_SIZE=3), and by LOCAL_WORLD_SIZE=2 only 2 of them are on this node: without a secret, `,
			new(*dist.MissingConfigurationError)},
		"no such rank": {ours.with(variables{"GOCCL_SHM_RANK": "3"}), `initialization of "ccl" failed: GOCCL_SHM_RANK=3 and GOCCL_SHM_SIZE=3 contradict each other: `,
			new(*dist.InitializationFailedError)},
	} {
		t.Run(name, func(t *testing.T) {
			c.env.set(t)
			newNode(t)
			err := dist.Spawn(func(context.Context, int) error { panic("started") })
			texts.Add(name, err)
			require.ErrorAs(t, err, c.as)
			require.True(t, strings.HasPrefix(err.Error(), c.text), err.Error())
			err = dist.InitProcessGroup("ccl")
			require.ErrorAs(t, err, c.as)
			var failed *dist.InitializationFailedError
			require.ErrorAs(t, err, &failed)
			text := c.text
			if _, ok := c.as.(**dist.InitializationFailedError); !ok {
				text = `initialization of "ccl" failed: ` + text
			}
			require.True(t, strings.HasPrefix(err.Error(), text), err.Error())
			require.False(t, dist.IsInitialized())
		})
	}
	require.NoError(t, dist.InitProcessGroup("ccl"), "nothing is left of it")
	require.NoError(t, dist.DestroyProcessGroup())
}

// WithRanks and the configuration may repeat the launcher's number but not contradict it.
func TestLaunchedWorldSize(t *testing.T) {
	torchrun.set(t)
	const launcher = "this process is rank 1 of 3 by the variables of torchrun (RANK=1, WORLD_SIZE=3)"

	err := dist.Spawn(func(context.Context, int) error { panic("started") }, dist.WithRanks(4))
	require.EqualError(t, err, "dist.WithRanks(4) asks for 4 ranks, but "+launcher+
		"; start 4 processes, or omit dist.WithRanks")
	var missing *dist.MissingConfigurationError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{"dist.WithRanks"}, missing.Missing)

	for name, in := range map[string]func(func() error) error{
		"Spawn":         func(f func() error) error { return spawn(t, func(context.Context, int) error { return f() }) },
		"without Spawn": func(f func() error) error { return f() },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			t.Setenv("GOCCL_CONFIG", configFile(t, "world_size: 3"))
			wait := n.others(t, reduce(t))
			require.NoError(t, in(func() error {
				if err := dist.InitProcessGroup("ccl"); err != nil {
					return err
				}
				sum(t)
				wait()
				return dist.DestroyProcessGroup()
			}))

			file := configFile(t, "world_size: 4")
			wait = n.others(t, func(_ *ccl.Communicator, err error) { aborted(t, err, 1, "the world size is 4 by ") })
			err := in(func() error { return dist.InitProcessGroup("ccl", dist.WithConfigFile(file)) })
			require.ErrorAs(t, err, &missing)
			require.ErrorContains(t, err, `initialization of "ccl" failed: the world size is 4 by `+file+`:2 (defaults.world_size), but `+launcher+
				"; start 4 ranks, or set defaults.world_size to 3")
			wait()
		})
	}
}

// aborted checks that the error of another process names the rank and its reason.
func aborted(t *testing.T, err error, by int, text string) {
	var a *dist.AbortedError
	if assert.ErrorAs(t, err, &a) {
		assert.Equal(t, by, a.By)
		assert.ErrorContains(t, a, text)
	}
}

// A rank that cannot take part tells the others before it returns, and all can retry.
func TestLaunchedRankFailsByItself(t *testing.T) {
	ours.set(t)
	n := newNode(t)
	wait := n.others(t, func(_ *ccl.Communicator, err error) {
		aborted(t, err, 1, "missing.yaml: cannot read the configuration")
	})
	within(t, func() {
		err := dist.InitProcessGroup("ccl", dist.WithConfigFile("missing.yaml"))
		require.EqualError(t, err, `initialization of "ccl" failed: missing.yaml: cannot read the configuration: no such file or directory`)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.False(t, dist.IsInitialized())
	})
	wait()
	wait = n.others(t, reduce(t))
	within(t, func() { require.NoError(t, dist.InitProcessGroup("ccl")); sum(t) })
	wait()
	require.NoError(t, dist.DestroyProcessGroup())

	// So is the name of the backend.
	wait = n.others(t, func(_ *ccl.Communicator, err error) { aborted(t, err, 1, `"nccl"`) })
	within(t, func() {
		var invalid *dist.InvalidBackendError
		require.ErrorAs(t, dist.InitProcessGroup("nccl"), &invalid)
	})
	wait()

	// The shared memory of processes needs Linux.
	dist.JoinBy(t, func(context.Context, shm.Job) (transport.Endpoint, error) {
		return nil, &transport.NotAvailableError{Transport: "shm", Reason: "ranks as processes need Linux"}
	})
	var unavailable *dist.BackendNotAvailableError
	require.ErrorAs(t, dist.InitProcessGroup("ccl"), &unavailable)
	require.Equal(t, &dist.BackendNotAvailableError{Requested: "shm", Reason: "ranks as processes need Linux"}, unavailable)
	require.NotContains(t, unavailable.Error(), "available: n")

	// If it cannot meet them, it returns its own error all the same.
	dist.JoinBy(t, func(context.Context, shm.Job) (transport.Endpoint, error) { return nil, errors.New("no memory") })
	require.EqualError(t, dist.InitProcessGroup("ccl", dist.WithConfigFile("missing.yaml")),
		`initialization of "ccl" failed: missing.yaml: cannot read the configuration: no such file or directory`)
	require.EqualError(t, dist.InitProcessGroup("ccl"), `initialization of "ccl" failed: no memory`)
}

// auto is shm between processes and local between goroutines; each rejects the other's
// ranks.
func TestTransports(t *testing.T) {
	var unavailable *dist.BackendNotAvailableError
	t.Run("local between processes", func(t *testing.T) {
		ours.set(t)
		n := newNode(t)
		const text = `option: defaults.transport: transport "local" is not available: this process is rank 1 of 3 by the variables of goccl run (GOCCL_SHM_RANK=1, GOCCL_SHM_SIZE=3), ` +
			`and local connects goroutines of one process: use shm, or auto (available: shm)`
		wait := n.others(t, func(_ *ccl.Communicator, err error) { aborted(t, err, 1, text) })
		err := dist.InitProcessGroup("ccl", dist.WithTransport("local"))
		require.EqualError(t, err, `initialization of "ccl" failed: `+text)
		require.ErrorAs(t, err, &unavailable)
		wait()
	})
	t.Run("shm between processes", func(t *testing.T) {
		ours.set(t)
		t.Setenv("GOCCL_TRANSPORT", "shm")
		n := newNode(t)
		wait := n.others(t, reduce(t))
		within(t, func() { require.NoError(t, dist.InitProcessGroup("ccl")); sum(t) })
		wait()
		require.NoError(t, dist.DestroyProcessGroup())
	})
	t.Run("shm between goroutines", func(t *testing.T) {
		const text = `initialization of "ccl" failed: option: defaults.transport: transport "shm" connects processes, and no launcher started this one as one of several ranks: ` +
			`start the program with goccl run -n %d, which sets GOCCL_SHM_NAME, GOCCL_SHM_RANK and GOCCL_SHM_SIZE, or use local, or auto, between goroutines`
		var missing *dist.MissingConfigurationError
		err := dist.InitProcessGroup("ccl", dist.WithTransport("shm"))
		require.EqualError(t, err, fmt.Sprintf(text, 2))
		require.ErrorAs(t, err, &missing)
		require.Equal(t, []string{"GOCCL_SHM_NAME", "GOCCL_SHM_RANK", "GOCCL_SHM_SIZE"}, missing.Missing)
		err = spawn(t, initialised(func(context.Context, int) error { return nil }, dist.WithTransport("shm")), dist.WithRanks(4))
		require.ErrorAs(t, err, &missing)
		require.ErrorContains(t, err, fmt.Sprintf(text, 4))
	})
}

// A worker's failure reaches the other processes, and theirs reaches this one.
func TestLaunchedWorkerFails(t *testing.T) {
	broken := errors.New("out of memory")
	barrier := func(text string) func(*ccl.Communicator, error) {
		return func(c *ccl.Communicator, err error) {
			if assert.NoError(t, err) {
				aborted(t, c.Barrier(context.Background()), 1, text)
			}
		}
	}
	ours.set(t)
	n := newNode(t)
	wait := n.others(t, barrier("out of memory"))
	err := spawn(t, initialised(func(context.Context, int) error { return broken }))
	wait()
	require.EqualError(t, err, "rank 1: out of memory")
	require.ErrorIs(t, err, broken)

	wait = n.others(t, barrier("the worker panicked: at the disco"))
	err = spawn(t, initialised(func(context.Context, int) error { return thisPanics() }))
	wait()
	var p *dist.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, 1, p.Rank)

	wait = n.others(t, func(c *ccl.Communicator, err error) {
		if assert.NoError(t, err) {
			if c.Rank() == 2 {
				c.Abort(broken)
			}
			aborted(t, c.Barrier(context.Background()), 2, "out of memory")
		}
	})
	err = spawn(t, initialised(func(context.Context, int) error { return dist.Barrier() }))
	wait()
	require.ErrorContains(t, err, "rank 1: ccl: barrier")
	aborted(t, err, 2, "out of memory")

	_, err = dist.Default()
	require.ErrorIs(t, err, dist.ErrNotInitialized)
	require.Zero(t, dist.Bound())
}

// No wait outlasts the timeout, the context or the worker.
func TestLaunchedRankIsAlone(t *testing.T) {
	ours.set(t)
	newNode(t)
	err := spawn(t, func(context.Context, int) error {
		return dist.InitProcessGroup("ccl", dist.WithTimeout(20*time.Millisecond))
	})
	var late *dist.TimeoutError
	require.ErrorAs(t, err, &late)
	require.Equal(t, []int{0, 2}, late.Missing)

	ctx, cancel := context.WithCancel(t.Context())
	err = spawn(t, func(context.Context, int) error {
		dist.Go(cancel)
		return dist.InitProcessGroup("ccl", dist.WithTimeout(-1))
	}, dist.WithSpawnContext(ctx))
	require.ErrorIs(t, err, context.Canceled)

	n := newNode(t)
	left := make(chan error)
	err = spawn(t, func(context.Context, int) error {
		dist.Go(func() { left <- dist.InitProcessGroup("ccl", dist.WithTimeout(-1)) })
		<-n.next // it is waiting
		return nil
	})
	require.NoError(t, err)
	within(t, func() { err = <-left })
	require.EqualError(t, err, `initialization of "ccl" failed: a worker returned without a call of dist.InitProcessGroup to match: `+
		`peer lost: rank 1 has left the group`)
}

// A process of a launcher is in one job at a time: two would number their rendezvous
// differently in different processes.
func TestLaunchedOneJobAtATime(t *testing.T) {
	ours.set(t)
	n := newNode(t)
	const text = "dist: spawn: this process is rank 1 of 3 by the variables of goccl run (GOCCL_SHM_RANK=1, GOCCL_SHM_SIZE=3), in one job at a time: " +
		"wait for the other dist.Spawn to return, or call dist.DestroyProcessGroup first"
	never := func(context.Context, int) error { panic("started") }
	require.NoError(t, spawn(t, func(context.Context, int) error {
		assert.EqualError(t, dist.Spawn(never), text)
		return nil
	}))
	wait := n.others(t, reduce(t))
	within(t, func() { require.NoError(t, dist.InitProcessGroup("ccl")) })
	var invalid *dist.InvalidArgumentError
	require.ErrorAs(t, dist.Spawn(never), &invalid)
	require.EqualError(t, invalid, text)
	sum(t)
	wait()
	require.NoError(t, dist.DestroyProcessGroup())
}
