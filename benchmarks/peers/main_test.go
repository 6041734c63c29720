package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

// fakePeer is the variable that makes the test binary one of the fakes.
const fakePeer = "TEST_PEERS_FAKE"

func TestMain(m *testing.M) {
	if play, ok := fakes[os.Getenv(fakePeer)]; ok {
		play()
		os.Exit(0)
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // or each fake takes a second to end
		panic(err)
	}
	os.Exit(m.Run())
}

var fakes = map[string]func(){
	// Prints a row for each size on its command line.
	"rows": func() {
		rows := []table.Row{}
		for _, bytes := range os.Args[6:] {
			n, err := parseSize(bytes)
			if err != nil {
				panic(err)
			}
			rows = append(rows, table.Row{Contestant: table.Contestant{Library: os.Args[1], Entry: os.Args[2]}, Ranks: 2, Bytes: n,
				Cores: "0|1", ComputeUS: 40, Passes: 1, Calls: 7, P50US: 3, BestUS: 3, P90US: 3.5, P99US: 4, LeastUS: 2})
		}
		if err := table.Write(os.Stdout, rows); err != nil {
			panic(err)
		}
	},
	"hang": func() { time.Sleep(time.Hour) },
	"fail": func() {
		fmt.Fprintln(os.Stderr, "no shared memory")
		os.Exit(3)
	},
	"talk":   func() { fmt.Println("hello") },
	"silent": func() {},
}

// fake is an entry whose program is the test binary.
func fake(play string) entry {
	return entry{name: play, launch: func(int) child { return fakeChild(play) }}
}

func fakeChild(play string) child {
	return child{args: []string{os.Args[0]}, env: []string{fakePeer + "=" + play}}
}

func tiny() options {
	return options{ranks: []int{2}, sizes: []int{0, 8}, passes: 1, budget: time.Millisecond, limit: time.Minute}
}

func TestPeerIsMeasured(t *testing.T) {
	rows, err := fake("rows").measure(t.Context(), "mine", 2, tiny())
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, table.Row{Contestant: table.Contestant{Library: "mine", Entry: "rows"}, Ranks: 2, Bytes: 8,
		Cores: "0|1", ComputeUS: 40, Passes: 1, Calls: 7, P50US: 3, BestUS: 3, P90US: 3.5, P99US: 4, LeastUS: 2}, rows[1])
}

// The error of a failed peer has its name, its command and its output.
func TestPeerThatFails(t *testing.T) {
	for play, says := range map[string]string{
		"fail": "exit status 3: no shared memory",
		"talk": "no table",
	} {
		_, err := fake(play).measure(t.Context(), "mine", 2, tiny())
		require.ErrorContains(t, err, "mine "+play+", 2 ranks: ")
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "the command was: env "+fakePeer+"="+play+" "+os.Args[0])
	}
	short := tiny()
	short.sizes = nil
	rows, err := fake("rows").measure(t.Context(), "mine", 4, short)
	require.NoError(t, err)
	require.Empty(t, rows)
	_, err = fake("rows").measure(t.Context(), "mine", 4, tiny()) // its rows are for 2 ranks
	require.ErrorContains(t, err, "no row for 0 bytes")
}

func TestPeerThatHangs(t *testing.T) {
	o := tiny()
	o.limit = 50 * time.Millisecond
	_, err := fake("hang").measure(t.Context(), "mine", 2, o)
	require.ErrorContains(t, err, "mine hang, 2 ranks: killed: it had not ended after 50ms")
}

// Contestants take turns; after a failure a contestant gets no more turns.
func TestTurns(t *testing.T) {
	var order []string
	player := func(name string, failing int) turn {
		return turn{table.Contestant{Library: name, Entry: "x"}, func(_ context.Context, ranks int, _ options) ([]table.Row, error) {
			order = append(order, fmt.Sprint(name, ranks))
			if ranks == failing {
				return nil, errors.New(name + " fell")
			}
			return []table.Row{{Contestant: table.Contestant{Library: name, Entry: "x"}, Ranks: ranks}}, nil
		}}
	}
	o := options{ranks: []int{2, 4}, passes: 2}
	rows, err := takeTurns(t.Context(), o, []turn{player("a", 0), player("b", 4), player("c", 0)}, io.Discard)
	require.EqualError(t, err, "b fell")
	require.Equal(t, "a2 b2 c2 a4 b4 c4 a2 c2 a4 c4", strings.Join(order, " "))
	require.Len(t, rows, 9)
}

func TestTurnsEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	turns := 0
	t1 := turn{ours, func(context.Context, int, options) ([]table.Row, error) {
		turns++
		cancel(errors.New("interrupted"))
		return nil, nil
	}}
	_, err := takeTurns(ctx, options{ranks: []int{2, 4}, passes: 2}, []turn{t1, t1}, io.Discard)
	require.EqualError(t, err, "interrupted")
	require.Equal(t, 1, turns)
}

func TestNothingInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, errs strings.Builder
	require.Equal(t, 1, command(nil, &out, &errs))
	require.Contains(t, errs.String(), "Open MPI is missing: mpicc.openmpi and mpirun.openmpi are not in PATH")
	require.Contains(t, errs.String(), "apt-get install openmpi-bin libopenmpi-dev gcc")
	require.Contains(t, errs.String(), "MPICH is missing")
	require.Contains(t, errs.String(), "apt-get install mpich libmpich-dev gcc")
	require.Contains(t, errs.String(), "torch gloo is missing: no python3 in PATH has torch")
	require.Contains(t, errs.String(), "apt-get install python3-torch")
	require.Contains(t, errs.String(), "there is no peer to compare with")
	require.Empty(t, out.String())
}

// The whole program, with a fake Open MPI: its compiler links the test binary, and its
// launcher runs that once. goccl's program is a fake, too.
func TestCompare(t *testing.T) {
	bin := t.TempDir()
	script(t, bin, "mpicc.openmpi", `exec /bin/ln -s `+os.Args[0]+` "$3"`)
	script(t, bin, "mpirun.openmpi", `
[ "$1" = --version ] && { echo "mpirun (Open MPI) 9.8.7"; exit; }
while [ "$1" != -n ]; do shift; done
shift 2
`+fakePeer+`=rows exec "$@"`)
	script(t, bin, "goccl_allreduce", `shift 2; `+fakePeer+`=rows exec `+os.Args[0]+` "$@"`)
	script(t, bin, "goccl", `shift 4; exec "$@"`) // run -n 2 --no-prefix
	script(t, bin, "go", `exec /bin/ln -s `+filepath.Join(bin, "goccl")+` `+filepath.Join(bin, "goccl_allreduce")+` "$3"`)
	t.Setenv("PATH", bin)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Chdir(t.TempDir())

	var out, errs strings.Builder
	status := command([]string{"-only", "openmpi", "-ranks", "2", "-sizes", "0,4,64", "-passes", "2", "-budget", "1ms", "-compute", "40us"}, &out, &errs)
	require.Equal(t, 0, status, errs.String())
	require.Contains(t, out.String(), "Open MPI 9.8.7")
	require.Contains(t, out.String(), "every rank computes for 40µs, 0.9 to 1.1 times that long, before each call; 2 passes\n")
	require.Regexp(t, `\| +2 \| +64 B (\| +3\.00 ){3}(\| +3\.00 \(1\.0x\) ){3}\|`, out.String())
	require.Contains(t, out.String(), "2 ranks on cores 0|1: goccl, goroutines; goccl, processes; goccl, alloc; Open MPI, default; Open MPI, tuned; Open MPI, eager\n")
	require.Contains(t, errs.String(), "pass 2 of 2, 2 ranks: openmpi tuned\n")

	text, err := os.ReadFile("peers.csv")
	require.NoError(t, err)
	rows, err := table.Parse(string(text))
	require.NoError(t, err)
	require.Len(t, rows, 18) // six contestants, three sizes
	last, ok := findRow(rows, table.Contestant{Library: "openmpi", Entry: "tuned"}, 2, 64)
	require.True(t, ok)
	require.Equal(t, 14, last.Calls)
	require.Equal(t, 2, last.Passes)
	remaining, err := filepath.Glob(filepath.Join(tmp, "*"))
	require.NoError(t, err)
	require.Empty(t, remaining, "the workplace is removed")
}

func TestWrongResultsAreAnError(t *testing.T) {
	rows := []table.Row{{Contestant: table.Contestant{Library: "a", Entry: "b"}, Ranks: 4, Bytes: 1024, Errors: 3}, {Contestant: ours}}
	require.EqualError(t, checkResults(rows), "a b, 4 ranks, 1 KiB: 3 elements of results are wrong")
	require.NoError(t, checkResults(rows[1:]))
}

func script(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
}
