//go:build unix

package tool

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/launcher"
)

// ended returns the exit status of a program.
func ended(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	require.NoError(t, err)
	return 0
}

// The program starts ranks, and is silent if all goes well.
func TestRun(t *testing.T) {
	c, stderr := program(t, "run", "-n", "2", "/bin/sh", "-c", "echo rank $RANK of $WORLD_SIZE -n $0", "--quiet")
	stdout, err := c.Output()
	require.NoError(t, err, "%s", stderr)
	require.Equal(t, []string{"[0] rank 0 of 2 -n --quiet\n", "[1] rank 1 of 2 -n --quiet\n"}, slices.Sorted(strings.Lines(string(stdout))))
	require.Empty(t, stderr.String())
}

// Flags after the program are its own, with or without -- before it.
func TestRunArguments(t *testing.T) {
	for _, line := range []string{"-n1 --no-prefix echo -n1 -- a", "-n1 --no-prefix -- echo -n1 -- a"} {
		c, stderr := program(t, append([]string{"run"}, strings.Fields(line)...)...)
		c.Args[len(c.Args)-3] = "-n1x" // echo has a -n of its own
		stdout, err := c.Output()
		require.NoError(t, err, "%s", stderr)
		require.Equal(t, "-n1x -- a\n", string(stdout))
	}
}

// The message and the exit status of a failure.
func TestRunFailure(t *testing.T) {
	c, stderr := program(t, "run", "-n", "3", "--", "/bin/sh", "-c", `if [ $RANK = 2 ]; then echo out of luck >&2; exit 42; fi; sleep 1000`)
	stdout, err := c.Output()
	require.Equal(t, 42, ended(t, err))
	require.Empty(t, string(stdout))
	require.Equal(t, `[2] out of luck
goccl: error: rank 2 (pid P) was the first to fail, after T: exit status 42
                the last that it wrote to standard error:
                  out of luck
                ranks 0, 1: ended by SIGTERM
goccl: the job ran for T, with no restart: status 42
`, regexp.MustCompile(`(after|for) [0-9.]+m?s`).ReplaceAllString(regexp.MustCompile(`pid \d+`).ReplaceAllString(stderr.String(), "pid P"), "$1 T"))

	for line, status := range map[string]int{
		"-n 2 no-such-program":           127,
		"-n 2 /":                         126,
		"-n 2 --pin -n 60000 true":       2,
		"-n 2 --output /dev/null/a true": 2,
	} {
		c, stderr := program(t, append([]string{"run"}, strings.Fields(line)...)...)
		require.Equal(t, status, ended(t, c.Run()), "%s: %s", line, stderr)
		require.Contains(t, stderr.String(), "goccl: error: ")
	}
}

// What was probably meant by a program that cannot be started.
func TestRunHints(t *testing.T) {
	alone(t)
	require.NoError(t, os.Mkdir("two", 0o777))
	writeFile(t, "two/main.go", "package main\n")
	for line, want := range map[string]string{
		"-n 2 --pin off ./p":    "(did you mean --pin=off?)",
		"-n 2 two/main.go":      "it is Go source; goccl run -n 2 -- go run ./two builds and starts it",
		"-n 2 ./two":            "it is Go source; goccl run -n 2 -- go run ./two builds and starts it",
		"-n 2 -x A=1 true":      "--env sets a variable, as in goccl run --env A=1",
		"-n 2 --timeout 5 true": "as in goccl run --env GOCCL_TIMEOUT=5",
	} {
		c, stderr := program(t, append([]string{"run"}, strings.Fields(line)...)...)
		require.Contains(t, []int{2, 126, 127}, ended(t, c.Run()), line)
		require.Contains(t, stderr.String(), want)
	}
	c, stderr := program(t, "run", "-n", "2", "./two --lr 0.1")
	require.Equal(t, 127, ended(t, c.Run()))
	require.Contains(t, stderr.String(), "./two --lr 0.1: there is no such program: without quotes the rest are its arguments\n")
}

// Pinning is wanted, not wanted, or left to the tool.
func TestPinFlag(t *testing.T) {
	for line, want := range map[string]launcher.Pinning{
		"-n 2 true":       launcher.PinDefault,
		"-n 2 --pin true": launcher.PinOn, "-n 2 --pin=on true": launcher.PinOn, "-n 2 --pin=true true": launcher.PinOn,
		"-n 2 --pin=off true": launcher.PinOff, "-n 2 --pin=false true": launcher.PinOff,
		"-n 2 true --pin": launcher.PinDefault, // a flag of the program
	} {
		var c runCommand
		parser, err := kong.New(&c)
		require.NoError(t, err)
		_, err = parser.Parse(strings.Fields(line))
		require.NoError(t, err, line)
		require.Equal(t, want, launcher.Pinning(c.Pin), line)
		require.Equal(t, "true", c.Args[0])
	}
}

// The number of ranks, as mpirun and torchrun spell it. Flags of the program stay its own.
func TestRanksFlag(t *testing.T) {
	for _, line := range []string{
		"-n 3 true -np 4", "-n3 true -np 4", "--ranks=3 true -np 4", "-np 3 true -np 4", "-np=3 true -np 4", "-np3 true -np 4",
		"--np 3 true -np 4", "--nproc-per-node 3 true -np 4", "--nproc_per_node=3 true -np 4",
	} {
		var c runCommand
		parser, err := kong.New(&c)
		require.NoError(t, err)
		_, err = parser.Parse(strings.Fields(line))
		require.NoError(t, err, line)
		require.Equal(t, rankCount(3), *c.Ranks, line)
		require.Equal(t, []string{"true", "-np", "4"}, c.Args)
	}
}

// Variables are set, or kept although ranks do not inherit them; the last of a name counts.
func TestEnv(t *testing.T) {
	t.Setenv("MASTER_PORT", "1")
	t.Setenv("MASTER_ADDR", "h")
	c, stderr := program(t, "run", "-n", "1", "--env", "LIST=a,b=c", "--env=MASTER_PORT", "--env", "TWICE=1", "--env", "TWICE=2",
		"/bin/sh", "-c", "echo $LIST $MASTER_PORT $TWICE $MASTER_ADDR.")
	stdout, err := c.Output()
	require.NoError(t, err, "%s", stderr)
	require.Equal(t, "[0] a,b=c 1 2 .\n", string(stdout))
}

// Output goes to files and is shown, with the time.
func TestTeeFlag(t *testing.T) {
	dir := t.TempDir()
	c, stderr := program(t, "run", "-n", "2", "--tee", dir, "--timestamps", "/bin/sh", "-c", "echo rank $RANK")
	stdout, err := c.Output()
	require.NoError(t, err, "%s", stderr)
	require.Regexp(t, `(?m)^\d\d:\d\d:\d\d\.\d{3} \[1\] rank 1$`, string(stdout))
	text, err := os.ReadFile(filepath.Join(dir, "rank-1.out"))
	require.NoError(t, err)
	require.Equal(t, "rank 1\n", string(text))
}

// Invalid flags have the exit status of shells and launchers.
func TestRunUsage(t *testing.T) {
	for line, want := range map[string]string{
		"true":                         "-n is missing: give the number of ranks before the program, as in goccl run -n 4 ./train",
		"-n 4":                         "the program is missing, as in goccl run -n 4 ./train",
		"-n 4 --":                      "the program is missing, as in goccl run -n 4 ./train",
		"-n 0 true":                    "-n 0: from 1 to 65536 ranks are possible",
		"--ranks=-1 true":              "-n -1: from 1 to 65536 ranks are possible",
		"-n 65537 true":                "-n 65537: from 1 to 65536 ranks are possible",
		"-n two true":                  `--ranks: want a number, but got "two"`,
		"-np two true":                 `--ranks: want a number, but got "two"`,
		"-np":                          "--ranks: expected number value",
		"-N 4 true":                    "goccl run starts all ranks on this node, as many as -n, as in goccl run -n 4 ./train",
		"-n 4 -N1 true":                "goccl run starts all ranks on this node, as many as -n, as in goccl run -n 4 ./train",
		"-n 2 --env =1 true":           `--env "=1": want NAME=VALUE or NAME`,
		"-n 2 --env RANK=1 true":       "--env RANK: goccl run sets this variable of each rank",
		"-n 2 --env NOT_SET_HERE true": "--env NOT_SET_HERE: the variable is not set; give it a value, as in --env NOT_SET_HERE=1",
		"-n 2 --tee a -o b true":       "--output shows no lines and --tee does: give one of them",
		"-n 2 --timestamps -o b true":  "--output shows no lines: it excludes --quiet, --no-prefix and --timestamps",
		"-n 2 --grace=-1s true":        "--grace -1s: want 0 or more",
		"-n 2 --quiet -o out true":     "--output shows no lines: it excludes --quiet, --no-prefix and --timestamps",
		"-n 2 --no-prefix -o out true": "--output shows no lines: it excludes --quiet, --no-prefix and --timestamps",
		"-n 2 --pin=maybe true":        `--pin: want on or off, but got "maybe"`,
		"-n 60000 --pin true":          "--pin: 60000 ranks cannot have a core each: this process may use ",
		"-n 60000 --pin=on true":       "start fewer ranks, or let them share cores with --pin=off",
		"-n 2 --colour true":           "unknown flag --colour",
	} {
		require.Contains(t, failed(t, 2, append([]string{"run"}, strings.Fields(line)...)...), want, line)
	}
	require.Contains(t, failed(t, 2, "explain", "--colour"), "unknown flag --colour")
	require.Contains(t, printed(t, "run", "--help"), "Number of processes to start.")
}
