package mesh

import (
	"context"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/transport"
	"github.com/stretchr/testify/require"
)

const secret = "the secret of these tests"

// freePort returns a port of loopback at which nothing listens.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// configs returns those of a job's ranks, which find each other at a port of loopback.
func configs(t *testing.T, size int) []*Config {
	port := freePort(t)
	all := make([]*Config, size)
	for rank := range all {
		all[rank] = &Config{
			Rank: rank, Size: size, Job: "job/1", Rendezvous: fixed{loopback, port}, Secret: secret, IsLoopback: true,
			Node: rank / 2, Build: "b1",
		}
	}
	return all
}

// result is what Connect has returned.
type result struct {
	*Mesh
	rank int
	err  error
}

// connectAll connects ranks at the same time, each with a delay.
func connectAll(ctx context.Context, configs []*Config, delay func(rank int) time.Duration) []result {
	results := make([]result, len(configs))
	var running sync.WaitGroup
	for i, c := range configs {
		if c == nil {
			continue // it does not come
		}
		running.Go(func() {
			if delay != nil {
				time.Sleep(delay(i))
			}
			results[i].rank = c.Rank
			results[i].Mesh, results[i].err = Connect(ctx, c)
		})
	}
	running.Wait()
	return results
}

// bounded returns the context of a test that does not depend on it.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// exchange sends a byte of its own over each lane, and checks that the other end has the other's.
func exchange(t *testing.T, meshes []result) {
	t.Helper()
	for _, m := range meshes {
		require.NoError(t, m.err)
		for peer, lanes := range m.Conns {
			for lane, conn := range lanes {
				_, err := conn.Write([]byte{byte(m.rank), byte(peer), byte(lane)})
				require.NoError(t, err)
			}
		}
	}
	for _, m := range meshes {
		for peer, lanes := range m.Conns {
			for lane, conn := range lanes {
				got := make([]byte, 3)
				_, err := io.ReadFull(conn, got)
				require.NoError(t, err)
				require.Equal(t, []byte{byte(peer), byte(m.rank), byte(lane)}, got)
			}
		}
	}
	for _, m := range meshes {
		require.NoError(t, m.Close())
	}
}

func TestConnect(t *testing.T) {
	for _, size := range []int{1, 2, 5, 8} {
		all := configs(t, size)
		results := connectAll(bounded(t), all, nil)
		for rank, m := range results {
			require.NoError(t, m.err)
			require.Equal(t, slices.Repeat([]int{os.Getpid()}, size), m.PIDs)
			require.Len(t, m.Conns, size)
			for peer, lanes := range m.Conns {
				switch {
				case peer == rank:
					require.Empty(t, lanes)
				case peer/2 == rank/2:
					require.Len(t, lanes, 1)
				default:
					require.Len(t, lanes, 2)
				}
			}
		}
		_, err := net.Dial("tcp", all[0].Rendezvous.(fixed).String())
		require.ErrorIs(t, err, syscall.ECONNREFUSED, "nothing listens while the job runs")
		exchange(t, results)
	}
}

func TestAnyOrder(t *testing.T) {
	last := func(rank int) time.Duration { return time.Duration(4-rank) * 30 * time.Millisecond }
	exchange(t, connectAll(bounded(t), configs(t, 4), last))
}

func TestIPv6AndNames(t *testing.T) {
	for _, host := range []string{"::1", "localhost"} {
		all := configs(t, 3)
		for _, c := range all {
			c.Rendezvous = fixed{host, c.Rendezvous.(fixed).port}
		}
		if l, err := net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			t.Skipf("this host lacks %s: %v", host, err)
		} else {
			require.NoError(t, l.Close())
		}
		exchange(t, connectAll(bounded(t), all, nil))
	}
}

// failAll connects ranks that do not succeed, and returns their errors.
func failAll(t *testing.T, ctx context.Context, configs []*Config) (errs []error) {
	t.Helper()
	for i, r := range connectAll(ctx, configs, nil) {
		if configs[i] != nil {
			require.Error(t, r.err)
			require.Nil(t, r.Mesh)
		}
		errs = append(errs, r.err)
	}
	return errs
}

// requireAborted checks that all ranks got one error, as an *AbortedError on all ranks but by.
func requireAborted(t *testing.T, errs []error, by int, parts ...string) {
	t.Helper()
	for rank, err := range errs {
		for _, part := range parts {
			require.ErrorContains(t, err, part)
		}
		aborted, is := errors.AsType[*transport.AbortedError](err)
		if require.Equal(t, rank != by, is, "%v", err); is {
			require.Equal(t, by, aborted.By)
		}
	}
}

func TestMisfits(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		parts  []string
	}{
		"another size":            {func(c *Config) { c.Size = 3 }, []string{"rank 2 on host ", " is one of 3 ranks, and rank 0 on host ", " one of 4: give all the same WORLD_SIZE"}},
		"another build":           {func(c *Config) { c.Build = "b2" }, []string{"has another build of the program than rank 0 on host ", ": b2, not b1"}},
		"a rank that is there":    {func(c *Config) { c.Rank = 1 }, []string{"two processes say they are rank 1, one on host ", "give each a rank of its own"}},
		"a rank beyond the ranks": {func(c *Config) { c.Rank = 4 }, []string{"rank 4 on host ", "is none of the 4 ranks"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := configs(t, 4)
			c.change(all[2])
			errs := failAll(t, bounded(t), all)
			by := all[2].Rank
			if by == 1 {
				_, isAborted := errors.AsType[*transport.AbortedError](errs[2])
				require.False(t, isAborted, "both are rank 1: %v", errs[2])
				errs[2] = errs[3]
			}
			if by == 4 {
				require.ErrorContains(t, errs[2], "is none of the 4 ranks")
				errs[2] = errs[3]
			}
			requireAborted(t, errs, by, c.parts...)
		})
	}
}

func TestMissingRanks(t *testing.T) {
	all := configs(t, 6)
	for _, c := range all {
		c.LocalRank, c.LocalSize = c.Rank%2, 2
	}
	all[3], all[4], all[5] = nil, nil, nil
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for rank, err := range failAll(t, ctx, all)[:3] {
		late, ok := errors.AsType[*transport.TimeoutError](err)
		require.True(t, ok, "rank %d: %v", rank, err)
		require.Equal(t, []int{3, 4, 5}, late.Missing, "%v", err)
		require.ErrorContains(t, err, "rank 3 should be on host ")
		require.NotContains(t, err.Error(), "rank 4 should", "it is of a host from which no rank has come")
	}
}

func TestMissingRank0(t *testing.T) {
	all := configs(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Connect(ctx, all[1])
	late, ok := errors.AsType[*transport.TimeoutError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []int{0}, late.Missing)
	require.ErrorContains(t, err, "rank 0 at 127.0.0.1:")
}

func TestCancelledRank(t *testing.T) {
	all := configs(t, 3)
	ctx, cancel := context.WithCancel(bounded(t))
	errs := make(chan error, 1)
	go func() {
		_, err := Connect(ctx, all[1])
		errs <- err
	}()
	others := make(chan error, 1)
	go func() {
		_, err := Connect(bounded(t), all[0])
		others <- err
	}()
	time.AfterFunc(50*time.Millisecond, cancel)
	require.ErrorIs(t, <-errs, context.Canceled)
	select {
	case err := <-others: // if rank 1 had come
		aborted, ok := errors.AsType[*transport.AbortedError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, 1, aborted.By)
	case <-time.After(time.Minute):
		t.Fatal("rank 0 waits for a rank that has given up")
	}
}

// TestLostRank ends the connection of a rank that has come.
func TestLostRank(t *testing.T) {
	all := configs(t, 3)
	errs := make(chan error, 1)
	go func() {
		_, err := Connect(bounded(t), all[0])
		errs <- err
	}()
	var conn net.Conn
	require.Eventually(t, func() (ok bool) {
		var err error
		address, _ := all[1].Rendezvous.Find(t.Context())
		conn, err = handshake.Dial(t.Context(), address, nil, handshake.Identity{Secret: secret}, handshake.Opening{Purpose: purposeJoin, From: 1})
		return err == nil
	}, time.Minute, time.Millisecond)
	require.NoError(t, send(conn, &message{Member: &member{Rank: 1, Size: 3, Job: "job/1", Build: "b1", Host: "elsewhere"}}))
	require.NoError(t, conn.Close())
	err := <-errs
	lost, ok := errors.AsType[*transport.PeerLostError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, 1, lost.Rank)
	require.ErrorContains(t, err, "it was on host elsewhere")
}

// TestLostRoot ends the connection of rank 0, once it has said who it is and before.
func TestLostRoot(t *testing.T) {
	for _, pid := range []int{4711, 0} {
		c := configs(t, 2)[1]
		l, err := net.Listen("tcp", c.Rendezvous.(fixed).String())
		require.NoError(t, err)
		root := handshake.Serve(l, handshake.Identity{Secret: secret}, func(conn net.Conn, _ handshake.Opening) {
			if pid != 0 {
				_ = send(conn, &message{Member: &member{PID: pid}})
				_, _ = receive(conn)
			}
			_ = conn.Close()
		})
		ctx, cancel := context.WithTimeout(t.Context(), map[int]time.Duration{4711: time.Minute, 0: 100 * time.Millisecond}[pid])
		_, err = Connect(ctx, c)
		cancel()
		require.NoError(t, root.Close())
		if pid != 0 {
			require.ErrorContains(t, err, "peer lost: rank 0 (pid 4711) is gone; its connection, to ")
			continue
		}
		late, ok := errors.AsType[*transport.TimeoutError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, []int{0}, late.Missing)
	}
}

// TestSecondJob starts a second job, with another secret or another name, while the first waits.
func TestSecondJob(t *testing.T) {
	first := configs(t, 3)
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	results := make(chan []result, 1)
	go func() { results <- connectAll(ctx, first[:2], nil) }()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", first[0].Rendezvous.(fixed).String())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, time.Minute, time.Millisecond)

	for name, change := range map[string]func(*Config){
		handshake.ErrOtherSecret.Error():    func(c *Config) { c.Secret = "another secret of another job" },
		`and this rank is of job "job/2": `: func(c *Config) { c.Job = "job/2" },
	} {
		second := configs(t, 3)
		for _, c := range second {
			c.Rendezvous = first[0].Rendezvous
			change(c)
		}
		errs := failAll(t, ctx, second)
		require.ErrorContains(t, errs[0], "cannot listen at MASTER_PORT=")
		require.ErrorContains(t, errs[0], "another job may use it")
		require.ErrorContains(t, errs[1], name)
		require.ErrorContains(t, errs[2], name)
	}

	m, err := Connect(ctx, first[2]) // the first job does not mind
	require.NoError(t, err)
	exchange(t, append(<-results, result{m, 2, nil}))
}

// TestStrangersDoNotDisturb floods all ports of a job that joins.
func TestStrangersDoNotDisturb(t *testing.T) {
	for round := range 5 {
		all := configs(t, 4)
		ctx, cancel := context.WithCancel(bounded(t))
		var strangers sync.WaitGroup
		for kind, text := range []string{"", "GOCCL", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("x", 10000)} {
			strangers.Go(func() {
				for dialed := 0; ctx.Err() == nil && dialed < 200; {
					conn, err := net.Dial("tcp", all[0].Rendezvous.(fixed).String())
					if err != nil {
						continue
					}
					dialed++ // each takes a port of this host for a minute
					_, _ = conn.Write([]byte(text))
					if kind%2 == round%2 {
						_ = conn.Close()
					} else {
						defer conn.Close()
					}
				}
			})
		}
		exchange(t, connectAll(ctx, all, nil))
		cancel()
		strangers.Wait() // and their connections
	}
}

var joins = flag.Int("joins", 8, "how many random joins there are")

// TestRandomJoins lets ranks come in any order, be cancelled at any moment, be strangers of another
// size, or not come at all: all succeed, or all that have come fail, and none waits for long.
func TestRandomJoins(t *testing.T) {
	for seed := range *joins {
		random := rand.New(rand.NewPCG(1, uint64(seed)))
		all := configs(t, 2+random.IntN(5))
		size := len(all)
		culprit := random.IntN(size)
		ctx, cancel := context.WithCancel(bounded(t))
		cancelled, give := context.WithCancel(ctx)
		switch random.IntN(4) {
		case 0:
			culprit = -1
		case 1:
			all[culprit].Size = size + 1
		case 2:
			all[culprit].Build = "b3"
		case 3:
			time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, give)
		}

		results := make([]result, size)
		var running sync.WaitGroup
		for i, c := range all {
			delay := time.Duration(random.IntN(15)) * time.Millisecond
			running.Go(func() {
				time.Sleep(delay)
				within := ctx
				if i == culprit {
					within = cancelled
				}
				results[i].Mesh, results[i].err = Connect(within, c)
				if i == culprit && cancelled.Err() != nil {
					time.AfterFunc(2*time.Second, cancel) // it may not have come: then the others wait for it
				}
			})
		}
		running.Wait()
		failed := 0
		for _, r := range results {
			if r.err != nil {
				failed++
				_, isLate := errors.AsType[*transport.TimeoutError](r.err)
				require.False(t, isLate, "seed %d: %v", seed, r.err)
			} else {
				require.NoError(t, r.Close())
			}
		}
		if failed > 0 {
			require.NotEqual(t, -1, culprit, "seed %d: %v", seed, results)
		}
		isPartial := failed > 0 && failed < size // a rank that is cancelled as the mesh is ready
		require.False(t, isPartial && all[max(culprit, 0)].Size == size && cancelled.Err() == nil, "seed %d: %v", seed, results)
		give()
		cancel()
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("\x02\x00\x00\x00{}"))
	f.Add([]byte("\xff\xff\xff\xff{}"))
	f.Add([]byte("\x10\x00\x00\x00{\"linked\":true}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := receive(strings.NewReader(string(b))); err == nil && m == nil {
			t.Error("neither a message nor an error")
		}
	})
}

// A rank listens at all addresses only if it has reached rank 0 by loopback, and the job is not of
// one host, and nobody has chosen that interface.
func TestListenAt(t *testing.T) {
	near, far := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}, &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 4711, Zone: "eth7"}
	for _, c := range []struct {
		isLoopback bool
		chosen     net.IP
		from       *net.TCPAddr
		want       string
	}{
		{false, nil, near, ":0"},
		{false, near.IP, near, "127.0.0.1:0"},
		{true, nil, near, "127.0.0.1:0"},
		{false, nil, far, "[fe80::1%eth7]:0"},
	} {
		j := &joining{Config: &Config{IsLoopback: c.isLoopback}, from: c.chosen}
		require.Equal(t, c.want, j.listenAt(c.from).String())
	}
}
