package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asProgram makes the test binary run as the program ddp.
const asProgram = "DDP_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a rank that has ended.
type process struct {
	status      int
	out, errors string
}

// startRanks plays goccl run: it starts ranks processes of the program and waits for all.
func startRanks(t *testing.T, ranks int, args ...string) []process {
	t.Helper()
	all := make([]process, ranks)
	name := fmt.Sprintf("/ddp-%d-%x", os.Getpid(), time.Now().UnixNano())
	var running sync.WaitGroup
	for rank := range all {
		running.Go(func() {
			var out, errs strings.Builder
			c := exec.CommandContext(t.Context(), os.Args[0], args...)
			c.Stdout, c.Stderr = &out, &errs
			c.Env = append(os.Environ(), asProgram+"=1",
				"GOCCL_SHM_NAME="+name,
				fmt.Sprintf("GOCCL_SHM_RANK=%d", rank), fmt.Sprintf("GOCCL_SHM_SIZE=%d", ranks))
			_ = c.Run() // its status is the result
			all[rank] = process{c.ProcessState.ExitCode(), out.String(), errs.String()}
		})
	}
	running.Wait()
	return all
}

// The lines of the output that do not depend on the clock.
var learned = regexp.MustCompile(`(?m)^ +\d+ +\d\.\d{4} +\d\.\d{4}|^(weights|test accuracy): .*`)

// The same program learns the same weights, bit by bit, on goroutines of one process and on
// processes of a launcher; there only rank 0 reports.
func TestSameBitsAsProcesses(t *testing.T) {
	for _, c := range []struct {
		ranks     int
		algorithm string
	}{{1, "auto"}, {2, "auto"}, {3, "auto"}, {4, "auto"}, {8, "auto"}, {3, "ring"}, {4, "tree"}} {
		t.Run(fmt.Sprintf("ranks=%d/algorithm=%s", c.ranks, c.algorithm), func(t *testing.T) {
			args := []string{"-epochs", "1", "-batch", "64", "-algorithm", c.algorithm}
			var out, errs strings.Builder
			require.Zero(t, command(append(args, "-plot", "", "-ranks", strconv.Itoa(c.ranks)), &out, &errs), errs.String())
			want := learned.FindAllString(out.String(), -1)
			want = want[max(0, len(want)-3):] // without what one rank learned
			require.Len(t, want, 3, "an epoch, the weights and the accuracy: %s", out.String())

			for rank, p := range startRanks(t, c.ranks, args...) {
				require.Equal(t, process{out: p.out}, p, "rank %d", rank)
				if rank > 0 {
					require.Empty(t, p.out, "rank %d", rank)
					continue
				}
				require.Contains(t, p.out, " over shm (")
				require.Equal(t, want, learned.FindAllString(p.out, -1))
				require.NotContains(t, p.out, "speed-up", "nothing to compare with")
				require.Positive(t, lastLine(t, p.out))
			}
		})
	}
}

// Flags that contradict the launcher, or are unknown, fail all ranks.
func TestProcessesFail(t *testing.T) {
	for rank, p := range startRanks(t, 2, "-ranks", "3", "-epochs", "1") {
		require.Equal(t, 1, p.status)
		require.Empty(t, p.out)
		require.Contains(t, p.errors, fmt.Sprintf("ddp: dist.WithRanks(3) asks for 3 ranks, but this process is rank %d of 2", rank))
	}
	for _, p := range startRanks(t, 2, "-algorithm", "nosuch", "-epochs", "1") {
		require.Equal(t, 1, p.status)
		require.Empty(t, p.out)
		require.Contains(t, p.errors, "nosuch")
	}
}
