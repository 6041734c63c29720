//go:build unix

package launcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	faults "github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/test/screen"
)

const nodeSecret = "a secret of several nodes"

func init() {
	programs["node"] = func(args []string) { // a launcher: of which node, of how many, where they meet, ranks, program
		job := testJob(number(args[3]), args[4:]...)
		job.Nodes = testNodes(number(args[0]), number(args[1]), args[2])
		job.Stdout, job.Stderr, job.Grace = os.Stdout, os.Stderr, time.Minute
		if err := runError(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(9)
		}
	}
	programs["interrupted once"] = func(args []string) {
		asked := make(chan os.Signal, 2)
		signal.Notify(asked, syscall.SIGINT)
		fmt.Println("up")
		fmt.Println("got", <-asked)
		for _, err := os.Stat(args[0]); err != nil; _, err = os.Stat(args[0]) {
			time.Sleep(time.Millisecond)
		}
		os.Exit(len(asked))
	}
	programs["ends first"] = func(args []string) {
		for e := launchenv.ReadEnded(os.Getenv); os.Getenv("RANK") != args[0]; e = launchenv.ReadEnded(os.Getenv) {
			if e != nil {
				fmt.Println("rank", e.Rank, "has ended")
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	programs["variables"] = func([]string) {
		var values []string
		for _, name := range []string{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GOCCL_SHM_RANK", "GOCCL_SHM_SIZE", "GOCCL_NODES", "GOCCL_SHM_NAME", "MASTER_ADDR", "GOCCL_SHM_SECRET"} {
			values = append(values, os.Getenv(name))
		}
		fmt.Println(strings.Join(values, " "))
	}
}

func testNodes(node, nodes int, endpoint string) Nodes {
	return Nodes{Count: nodes, Rank: node, Endpoint: endpoint, Identity: handshake.Identity{Secret: nodeSecret}, Note: func(text string) { fmt.Fprintln(os.Stderr, text) }}
}

// freeEndpoint returns an address of loopback at which nothing listens, and from which the system
// lets nobody dial.
func freeEndpoint(t *testing.T) string {
	t.Helper()
	for range 1000 {
		endpoint := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if l, err := net.Listen("tcp", endpoint); err == nil {
			require.NoError(t, l.Close())
			return endpoint
		}
	}
	t.Fatal("no port is free")
	return ""
}

// nodeJobs are the parts of a job, each with that many ranks.
func nodeJobs(t *testing.T, ranks []int, args ...string) (jobs []*Spec) {
	endpoint := freeEndpoint(t)
	for node, n := range ranks {
		job := testJob(n, args...)
		job.Nodes = testNodes(node, len(ranks), endpoint)
		jobs = append(jobs, job)
	}
	return jobs
}

// runNodes runs the parts of a job, and returns their errors and what they wrote.
func runNodes(t *testing.T, jobs []*Spec) (outcomes []*Outcome, errs []error, out []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	outcomes, errs, outs := make([]*Outcome, len(jobs)), make([]error, len(jobs)), make([]bytes.Buffer, len(jobs))
	var running sync.WaitGroup
	for i, job := range jobs {
		job.Stdout = &outs[i]
		running.Go(func() { outcomes[i], errs[i] = job.Run(ctx) })
	}
	running.Wait()
	for i := range outs {
		out = append(out, outs[i].String())
	}
	return outcomes, errs, out
}

func TestNodes(t *testing.T) {
	jobs := nodeJobs(t, []int{2, 1, 3}, "variables")
	slices.Reverse(jobs) // they come in any order
	outcomes, errs, out := runNodes(t, jobs)
	slices.Reverse(outcomes)
	slices.Reverse(out)
	name := outcomes[0].Job
	rank := 0
	for node, ranks := range []int{2, 1, 3} {
		require.NoError(t, errs[node])
		require.Equal(t, name, outcomes[node].Job)
		lines := strings.Split(strings.TrimSpace(out[node]), "\n")
		slices.Sort(lines)
		for local := range ranks {
			require.Equal(t, fmt.Sprintf("[%[1]d] %[1]d 6 %[2]d %[3]d %[1]d 6 3 /%[4]s 127.0.0.1 %[5]s", rank, local, ranks, name, nodeSecret), lines[local])
			rank++
		}
	}
	require.Len(t, outcomes[0].Ranks, 6)
	for i, r := range outcomes[0].Ranks {
		require.NotZero(t, r.PID, "rank %d", i)
		require.Zero(t, r.Exit)
		require.Equal(t, []int{0, 0, 1, 2, 2, 2}[i], r.Node)
	}
}

// TestOneNodeFails lets one rank fail, of each node.
func TestOneNodeFails(t *testing.T) {
	for rank, node := range []int{0, 0, 1, 1} {
		_, errs, _ := runNodes(t, nodeJobs(t, []int{2, 2}, "exit", fmt.Sprint(rank), "7", "stay"))
		var ended *EndedError
		require.ErrorAs(t, errs[0], &ended)
		require.Equal(t, []int{rank}, ended.Blamed)
		require.Equal(t, 7, ended.ExitCode())
		require.ErrorContains(t, ended, fmt.Sprintf("rank %d (node %d, host %s, pid ", rank, node, hostname()))
		require.ErrorContains(t, ended, "was the first to fail, after ")

		var other *NodeError
		require.ErrorAs(t, errs[1], &other)
		require.Equal(t, 7, other.ExitCode())
		require.ErrorContains(t, other, fmt.Sprintf("rank %d (node %d, ", rank, node))
		require.ErrorContains(t, other, "(node 0, host "+hostname()+", has the whole error)")
		require.NotContains(t, other.Error(), "\n")
	}
}

// TestOutputOfAnotherNode shows what a rank of another node has written last.
func TestOutputOfAnotherNode(t *testing.T) {
	gate := t.TempDir() + "/gate"
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	_, errs, _ := runNodes(t, nodeJobs(t, []int{1, 1}, "failing", gate))
	require.ErrorContains(t, errs[0], "the last that it wrote to standard error:\n    line ")
}

// TestSignalOfAnyNode interrupts the launcher of each node.
func TestSignalOfAnyNode(t *testing.T) {
	for node := range 2 {
		jobs := nodeJobs(t, []int{1, 1}, "stay")
		started := []*running{start(jobs[0]), start(jobs[1])}
		for _, r := range started {
			r.out.Await(t, "up", 1)
		}
		started[node].signals <- syscall.SIGTERM
		var ended *EndedError
		require.ErrorAs(t, <-started[0].ended, &ended)
		require.Equal(t, syscall.SIGTERM, ended.Signal)
		require.Equal(t, 128+int(syscall.SIGTERM), ended.ExitCode())
		var other *NodeError
		require.ErrorAs(t, <-started[1].ended, &other)
		require.Equal(t, 128+int(syscall.SIGTERM), other.ExitCode())
	}
}

// TestInterruptOfAllNodes interrupts the launchers of all nodes, which is no second interrupt of any.
func TestInterruptOfAllNodes(t *testing.T) {
	file := t.TempDir() + "/file" // a gate may close before both have come to it
	var started []*running
	for _, job := range nodeJobs(t, []int{1, 1}, "interrupted once", file) {
		started = append(started, start(job))
	}
	for _, r := range started {
		r.out.Await(t, "up\n", 1)
	}
	started[1].signals <- syscall.SIGINT
	for _, r := range started {
		r.out.Await(t, "got interrupt\n", 1)
	}
	started[0].signals <- syscall.SIGINT
	started[0].signals <- syscall.SIGUSR2 // ignored: the launcher has handled the interrupt
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	e := started[0].failure(t)
	require.Equal(t, syscall.SIGINT, e.Signal)
	for _, r := range e.Ranks {
		require.Zero(t, r.Signal)
		require.Zero(t, r.Exit)
	}
	var other *NodeError
	require.ErrorAs(t, <-started[1].ended, &other)
	require.Equal(t, 130, other.ExitCode())

	// A second one kills, on whichever node it comes.
	started = nil
	for _, job := range nodeJobs(t, []int{1, 1}, "stubborn") {
		started = append(started, start(job))
	}
	for _, r := range started {
		r.out.Await(t, "up\n", 1)
	}
	started[1].signals <- syscall.SIGINT
	started[1].signals <- syscall.SIGINT
	require.Regexp(t, `\n  ranks 0, 1: killed by the second interrupt$`, started[0].failure(t).Error())
	require.ErrorAs(t, <-started[1].ended, &other)
	require.Equal(t, 130, other.ExitCode())
}

// TestSignalWhileWaiting ends launchers that wait for others.
func TestSignalWhileWaiting(t *testing.T) {
	for node, text := range []string{"SIGTERM came: waiting for node 1 to connect to port ", "SIGTERM came: waiting for node 0 at "} {
		r := start(nodeJobs(t, []int{1, 1}, "stay")[node])
		r.signals <- syscall.SIGUSR1
		r.signals <- syscall.SIGTERM
		err := <-r.ended
		require.ErrorContains(t, err, text)
		var refused *RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 143, refused.ExitCode())
	}
}

// TestNodeThatGivesUp lets one node fail before it starts its ranks. All have its status.
func TestNodeThatGivesUp(t *testing.T) {
	for node := range 2 {
		jobs := nodeJobs(t, []int{2, 2}, "stay")
		jobs[node].Flight = "/dev/null/no directory"
		_, errs, _ := runNodes(t, jobs)
		var refused *RefusedError
		require.ErrorAs(t, errs[node], &refused)
		require.Equal(t, 2, refused.ExitCode())
		status := interface{ ExitCode() int }(nil)
		require.ErrorAs(t, errs[1-node], &status)
		require.Equal(t, 2, status.ExitCode(), errs[1-node])
		require.ErrorContains(t, errs[1-node], "the flight recorders of the ranks: ")
		if node == 1 {
			require.Regexp(t, `^node 1 \(host \S+, ranks 2, 3\) was lost, after \S+: the flight recorders `, errs[0].Error())
		} else {
			require.Regexp(t, `^node 0, host \S+: the flight recorders `, errs[1].Error())
		}
	}
}

// TestEndOnAnotherNode tells the ranks of all nodes of the first one that has ended.
func TestEndOnAnotherNode(t *testing.T) {
	for _, rank := range []string{"0", "1"} {
		_, errs, out := runNodes(t, nodeJobs(t, []int{1, 1}, "ends first", rank))
		require.NoError(t, errors.Join(errs...))
		require.Contains(t, strings.Join(out, ""), "rank "+rank+" has ended")
	}
}

// TestLostNode kills the launcher of one node. Those of the others, and all ranks, end.
func TestLostNode(t *testing.T) {
	for lost := range 2 {
		endpoint := freeEndpoint(t)
		var commands []*exec.Cmd
		var outs, errs []*screen.Screen
		for node := range 2 {
			c := command("node", fmt.Sprint(node), "2", endpoint, "2", "stay")
			out, err := screen.New(), screen.New()
			c.Stdout, c.Stderr = out, err
			require.NoError(t, c.Start())
			commands, outs, errs = append(commands, c), append(outs, out), append(errs, err)
		}
		for _, out := range outs {
			out.Await(t, "up", 2)
		}
		kill(t, commands[lost].Process.Pid)
		for _, c := range commands {
			_ = c.Wait() // until all that have its output have ended
		}
		text := fmt.Sprint(errs[1-lost])
		if lost == 0 {
			require.Contains(t, text, "node 0, host "+hostname()+", was lost: its launcher is gone")
		} else {
			require.Regexp(t, "^node 1 .host "+hostname()+", ranks 2, 3. was lost, after .*s: its launcher is gone\n", text)
			require.Contains(t, text, "ranks 0, 1: ended by SIGTERM")
		}
	}
}

// connectInPlaceOf connects with node 0 as the launcher of another node's part of a job, until the
// end of the test.
func connectInPlaceOf(t *testing.T, job *Spec) (context.Context, *Launchers) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	l, err := job.Nodes.Connect(ctx, "goccl run")
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return ctx, l
}

// TestEndThatIsToldLate has a launcher that is slow to say how a rank has ended that others have
// lost: the rank has not left.
func TestEndThatIsToldLate(t *testing.T) {
	jobs := nodeJobs(t, []int{1, 2}, "stay")
	first := start(jobs[0])
	ctx, l := connectInPlaceOf(t, jobs[1])
	_, err := Exchange(ctx, l, nodeFacts{Ranks: 2, Host: "?"})
	require.NoError(t, err)
	first.out.Await(t, "up", 1)

	told := rankState{Number: 1, HasEnded: true, Rank: Rank{PID: 11, Exit: 1, Node: 1, Host: "?"}}
	told.Report = &launchenv.Report{Rank: 1, PID: 11, Time: time.Now(), Kind: launchenv.FailedError, Message: "rank 2 is gone", Cause: faults.PeerLost, Ranks: []int{2}}
	late := rankState{Number: 2, Rank: Rank{PID: 12, Node: 1, Host: "?"}}
	for begin := time.Now(); time.Since(begin) < 2*blameGrace; time.Sleep(watchPause) {
		l.send(nodeMessage{Ranks: []rankState{told, late}})
	}
	late.HasEnded, late.Signal = true, syscall.SIGKILL
	told.IsFinished, late.IsFinished = true, true
	l.send(nodeMessage{Ranks: []rankState{late, told}})
	require.ErrorContains(t, <-first.ended, "rank 2 (node 1, host ?, pid 12) was the first to fail, after ")
}

func TestNodesThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		texts  [2]string
	}{
		"another number of nodes": {func(j *Spec) { j.Nodes.Count = 3 }, [2]string{"was started with --nnodes 3, and node 0 with --nnodes 2", "was started with --nnodes 3, and node 0 with --nnodes 2"}},
		"another secret":          {func(j *Spec) { j.Nodes.Secret += "!" }, [2]string{"waiting for node 1 to connect to port ", handshake.ErrOtherSecret.Error()}},
		"a node that is another":  {func(j *Spec) { j.Nodes.Count, j.Nodes.Rank = 2, 2 }, [2]string{"says it is node 2 of 2: give each --node-rank once, from 0 to 1", "says it is node 2 of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := nodeJobs(t, []int{1, 1}, "stay")
			c.change(jobs[1])
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := jobs[0].Run(ctx)
				ended <- err
			}()
			_, err := jobs[1].Run(ctx)
			require.ErrorContains(t, err, c.texts[1])
			require.ErrorAs(t, err, new(*RefusedError))
			if name == "another secret" {
				cancel() // it is a stranger
			}
			require.ErrorContains(t, <-ended, c.texts[0])
		})
	}
}

// TestMessagesThatNoLauncherSends has a node 1 that knows the secret, or needs none, and is no
// launcher: node 0 names it, and does not crash.
func TestMessagesThatNoLauncherSends(t *testing.T) {
	early := nodeMessage{Watch: true}
	for text, c := range map[string]struct {
		first *nodeMessage // in place of the facts
		facts nodeFacts
	}{
		"its launcher sent a message out of order": {first: &early},
		"ranks 1 of 1 are to be on node 1":         {facts: nodeFacts{Ranks: 0}},
		"ranks 1 of 0 are to be on node 1":         {facts: nodeFacts{Ranks: -1}},
		"ranks 1 of 65537 are to be on node 1":     {facts: nodeFacts{Ranks: MaxRanks}},
		"node 1 (host ?, rank 1) was lost":         {facts: nodeFacts{Ranks: 1, Host: "?"}},
	} {
		t.Run(text, func(t *testing.T) {
			jobs := nodeJobs(t, []int{1, 1}, "stay")
			first := start(jobs[0])
			ctx, l := connectInPlaceOf(t, jobs[1])
			if c.first != nil {
				l.send(*c.first)
			} else if _, err := Exchange(ctx, l, c.facts); err == nil && c.facts.Ranks == 1 {
				first.out.Await(t, "up", 1)
				l.send(nodeMessage{Ranks: []rankState{{Number: -1}, {Number: 2}, {Number: 0, IsFinished: true}}})
				l.GiveUp(errors.New("that was all"))
			}
			require.ErrorContains(t, <-first.ended, text)
		})
	}
}
