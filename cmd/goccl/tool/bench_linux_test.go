package tool

import (
	"bufio"
	"os"
	"os/signal"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// The command measures processes that it starts, for each number of ranks, with all yardsticks.
func TestBenchProcesses(t *testing.T) {
	alone(t)
	c, stderr := program(t, bench("all_reduce", "gather", "barrier", "--transport=shm", "--ranks=2,3", "--root=1", "-b4", "-e64K", "-f16384", "--csv=a.csv")...)
	text, err := c.Output()
	require.NoError(t, err, "%s", stderr)
	require.Empty(t, stderr.String())
	for _, title := range []string{
		"all_reduce of float32 by sum, in place, 2 ranks over shm", "gather of float32 to rank 1, in place, 3 ranks over shm", "barrier, 3 ranks over shm",
	} {
		require.Contains(t, string(text), "\n"+title+"\n")
	}
	entries := map[string]int{}
	for _, row := range records(t, "a.csv") {
		require.Equal(t, "0", row["errors"])
		require.NotEmpty(t, row["p50_us"])
		if row["collective"] == "gather" {
			entries[row["library"]+" "+row["entry"]]++
		}
	}
	delete(entries, "yardstick core_to_core") // needs two free cores
	require.Equal(t, map[string]int{"goccl auto": 4, "yardstick own_copy": 4, "yardstick peer_copy": 4, "yardstick floor": 4, "yardstick barrier": 4}, entries)

	c, stderr = program(t, bench("--workload=lenet5", "--transport=shm", "--ranks=2,3", "--compute=100us", "--csv=c.csv")...)
	_, err = c.Output()
	require.NoError(t, err, "%s", stderr)
	steps := 0
	for _, row := range records(t, "c.csv") {
		require.Equal(t, "0", row["errors"])
		if row["library"] == measure.Library {
			require.Equal(t, "shm", row["transport"])
			steps++
		}
	}
	require.Equal(t, 2*2*4, steps)

	c, stderr = program(t, bench("--transport=shm", "--ranks=2", "-e4", "--compute=20us")...)
	text, err = c.Output()
	require.NoError(t, err, "%s", stderr)
	require.Contains(t, string(text), "4 in a row after computing 20us +-10 %, 2 ranks over shm")
}

// One command measures goroutines and processes, with their own memory and that of Alloc, and
// the ranks know what is varied.
func TestBenchTransports(t *testing.T) {
	alone(t)
	c, stderr := program(t, bench("--transport=local,shm", "--ranks=2", "-b64K", "-e64K", "--topology=torus_2d:2x1", "--param=ring.chunk=4KiB", "--memory=private,alloc",
		"--out-of-place", "--csv=a.csv")...)
	_, err := c.Output()
	require.NoError(t, err, "%s", stderr)
	var got []string
	for _, row := range records(t, "a.csv") {
		if row["library"] == measure.Library {
			require.Equal(t, "torus_2d:2x1", row["topology"])
			got = append(got, row["transport"]+" "+row["entry"]+" "+row["params"]+" "+row["memory"])
		}
	}
	require.Equal(t, []string{"local ring chunk=4KiB private", "local ring chunk=4KiB alloc", "shm ring chunk=4KiB private", "shm ring chunk=4KiB alloc"}, got)

	c, stderr = program(t, bench("gather", "reduce_scatter", "--transport=shm", "--ranks=3", "-b4K", "-e4K", "--in-place", "--out-of-place", "--memory=alloc", "--buckets=2", "--csv=b.csv")...)
	_, err = c.Output()
	require.NoError(t, err, "%s", stderr)
	for _, row := range records(t, "b.csv") {
		require.Equal(t, "0", row["errors"])
	}
}

// A sweep measures every combination that its file asks for, and each has cells of its own.
func TestSweepOfCombinations(t *testing.T) {
	alone(t)
	for _, name := range []string{"a", "b"} {
		writeFile(t, name+".yaml", "version: 1\nalgorithms: {tree: {module: tree, params: {chunk: 64KiB}}}\nrules: [{algorithm: tree}]\n")
	}
	const text = "version: 1\nconfig: [a.yaml, b.yaml]\ntopology: [ring_1d, torus_2d:2x1]\ntransport: [local, shm]\nparams: {tree: {chunk: [1KiB, 2KiB]}}\n" +
		"memory: [private, alloc]\nranks: 2\nbytes: 4KiB\ncompute: 20us\nbuckets: 2\ntime: 1ms\nwarmup: 0\nmin_calls: 2\nmax_calls: 2\n"
	writeFile(t, "all.yaml", text)
	c, stderr := program(t, "bench", "--sweep=all.yaml")
	_, err := c.Output()
	require.NoError(t, err, "%s", stderr)
	got := map[string]int{}
	for _, row := range records(t, "all-results/results.csv") {
		require.Equal(t, "0", row["errors"])
		if row["library"] == measure.Library {
			got[row["config"]+" "+row["topology"]+" "+row["transport"]]++
			got[row["entry"]+" "+row["params"]+" "+row["memory"]]++
			require.Equal(t, "2", row["buckets"])
		}
	}
	want := map[string]int{}
	for _, file := range []string{"a.yaml", "b.yaml"} {
		for _, grid := range []string{"ring_1d", "torus_2d:2x1"} {
			want[file+" "+grid+" local"], want[file+" "+grid+" shm"] = 4, 4
		}
	}
	for _, params := range []string{"chunk=1KiB", "chunk=2KiB"} {
		want["tree "+params+" private"], want["tree "+params+" alloc"] = 8, 8
	}
	require.Equal(t, want, got)
	page, err := os.ReadFile("all-results/report.html")
	require.NoError(t, err)
	require.Contains(t, string(page), " %, 2 ranks over shm, torus_2d:2x1, b.yaml</h2>")
	require.Contains(t, string(page), "held in b.yaml, torus_2d:2x1 over shm, for 2 ranks")

	c, stderr = program(t, "bench", "--sweep=all.yaml")
	done, err := c.Output()
	require.NoError(t, err, "%s", stderr)
	require.Contains(t, string(done), "8 cells, 8 done already")

	writeFile(t, "some.yaml", strings.Replace(text, "torus_2d:2x1", "torus_2d:3x1", 1))
	c, stderr = program(t, "bench", "--sweep=some.yaml")
	done, err = c.Output()
	require.NoError(t, err, "%s", stderr)
	require.Equal(t, 4, strings.Count(string(done), " refused: "), "a torus of three ranks cannot have two: a row, and the sweep goes on")
	page, err = os.ReadFile("some-results/report.html")
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(page), ">refused: "))
	c, stderr = program(t, "bench", "--sweep=some.yaml")
	done, err = c.Output()
	require.NoError(t, err, "%s", stderr)
	require.Contains(t, string(done), "8 cells, 8 done already")
}

// A cell that fails is a row with its error; the others are measured, and the same command tries it again.
func TestSweepWithFailures(t *testing.T) {
	alone(t)
	writeFile(t, "ccl.yaml", "version: 1\nalgorithms: {deadly: {module: deadly}, direct: {module: direct}}\ndefaults: {algorithm: direct, transport: shm}\n"+
		"rules: [{bytes: \"1KiB-1KiB\", algorithm: deadly}, {algorithm: direct}]\n")
	writeFile(t, "a.yaml", "version: 1\nalgorithms: auto\nranks: 2\nbytes: [64, 1KiB, 4KiB]\ntime: 1ms\nwarmup: 0\nmin_calls: 2\nmax_calls: 2\n")
	for _, before := range []string{"0", "2"} {
		c, stderr := program(t, "bench", "--sweep=a.yaml")
		text, err := c.Output()
		require.Error(t, err)
		require.Equal(t, 1, c.ProcessState.ExitCode())
		require.Contains(t, string(text), "3 cells, "+before+" done already")
		require.Regexp(t, `(?m)^ +1KiB all +failed: rank 1 \(pid \d+\).*SIGKILL`, string(text))
		require.Regexp(t, `(?m)^ +4KiB auto \(direct\) +[0-9]`, string(text))
		require.Contains(t, stderr.String(), "1 of 3 cells failed: the same command tries them again")
		require.FileExists(t, "a-results/report.html")
	}
}

// The ranks of a launcher measure together, and rank 0 prints and writes the files.
func TestBenchUnderALauncher(t *testing.T) {
	alone(t)
	under := func(args ...string) (stdout, stderr string, err error) {
		c, errors := program(t, append([]string{"run", "-n2", "--no-prefix", "--", os.Args[0]}, args...)...)
		text, err := c.Output()
		return string(text), errors.String(), err
	}
	text, stderr, err := under(bench("--ranks=2", "-b4", "-e1K", "-f256", "--algorithm=auto,ring,grid", "--json=a.json")...)
	require.NoError(t, err, stderr)
	require.Equal(t, 1, strings.Count(text, "machine "), text)
	require.Contains(t, text, "in place, 2 ranks over shm\n")
	require.Regexp(t, "grid +refused: ", text)
	d, err := measure.ReadFile("a.json")
	require.NoError(t, err)
	require.Len(t, d.Results, 2)

	for args, says := range map[string]string{
		"--ranks=3":             "a launcher has started 2 ranks, and --ranks asks for others: omit --ranks, or start goccl bench without the launcher",
		"--transport=local":     "local connects goroutines of one process: use shm, or auto",
		"--algorithm=rnig":      "did you mean ring?",
		"broadcast --root=2":    "root 2 is not a rank of 2",
		"--config=missing.yaml": "missing.yaml",
	} {
		_, stderr, err := under(bench(append(strings.Fields(args), "-e4")...)...)
		require.Error(t, err, args)
		require.Contains(t, stderr, says, args)
	}
	_, stderr, err = under("bench", "--sweep=a.yaml")
	require.Error(t, err)
	require.Contains(t, stderr, "start it without the launcher")
}

// A case that cannot be measured is a row, and a rank that dies is named.
func TestBenchProcessesFail(t *testing.T) {
	alone(t)
	writeFile(t, "ccl.yaml", "version: 1\nalgorithms: {deadly: {module: deadly}, direct: {module: direct}, grid: {module: grid}}\ndefaults: {algorithm: direct, transport: shm}\n")
	c, stderr := program(t, bench("--ranks=2", "-b4", "-e64", "-f16", "--algorithm=direct,grid")...)
	text, err := c.Output()
	require.NoError(t, err, "%s", stderr)
	require.Equal(t, 2, strings.Count(string(text), " refused: grid "), "%s", text)

	c, stderr = program(t, bench("--ranks=2", "-b4", "-e4", "--algorithm=direct,rnig")...)
	require.Error(t, c.Run())
	require.Equal(t, 2, c.ProcessState.ExitCode())
	require.Contains(t, stderr.String(), "there is no entry \"rnig\"")

	c, stderr = program(t, bench("--ranks=3", "-b1M", "-e1M", "--algorithm=deadly")...)
	require.Error(t, c.Run())
	require.Contains(t, stderr.String(), "goccl: error: rank 1 (pid ")
	require.Contains(t, stderr.String(), "SIGKILL")

	c, stderr = program(t, append([]string{"run", "-n2", "--", os.Args[0]}, bench("-b1M", "-e1M", "--algorithm=deadly")...)...)
	require.Error(t, c.Run())
	require.Contains(t, stderr.String(), "goccl: error: rank 1 (pid ")

	require.Contains(t, failed(t, 1, "bench", "--serve={}"), "--serve is for ranks that goccl bench has started")
}

// An interrupt ends the processes as well, those of a launcher between two calls.
func TestBenchProcessesInterrupted(t *testing.T) {
	alone(t)
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt) // a shell that has started this in the background ignores it for all
	defer signal.Stop(heard)
	for _, args := range [][]string{
		{"bench", "--transport=shm"},
		{"run", "-n2", "--no-prefix", "--", os.Args[0], "bench"},
	} {
		c, stderr := program(t, append(args, "--ranks=2", "-b4", "-f2", "--time=5ms", "--warmup=0", "--csv=a.csv")...)
		stdout, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		lines := bufio.NewScanner(stdout)
		for lines.Scan() && !strings.Contains(lines.Text(), "KiB auto ") && !strings.Contains(lines.Text(), " 4 auto ") { // a row: all ranks are there
		}
		require.NoError(t, c.Process.Signal(os.Interrupt))
		for lines.Scan() {
		}
		require.Error(t, c.Wait())
		require.Contains(t, stderr.String(), "interrupted")
		require.NotEmpty(t, records(t, "a.csv"))
		require.NoError(t, os.Remove("a.csv"))
	}
}
