package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asProgram makes the test binary run as the program.
const asProgram = "PARTITION_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The same program learns the same on goroutines of one process and on processes of a launcher, of which
// only that of worker 0 reports.
func TestProcesses(t *testing.T) {
	var goroutines strings.Builder
	require.NoError(t, run(&goroutines, []int{1, 1, 2, 2}, 1, someDigits(t)))

	const workers = 4
	var printed [workers]string
	var errs [workers]error
	name := fmt.Sprintf("/partition-%d-%x", os.Getpid(), time.Now().UnixNano())
	var running sync.WaitGroup
	for rank := range workers {
		running.Go(func() {
			c := exec.CommandContext(t.Context(), os.Args[0], "-epochs", "1", "-images", "60")
			c.Stderr = os.Stderr
			c.Env = append(os.Environ(), asProgram+"=1", "GOCCL_SHM_NAME="+name,
				fmt.Sprintf("GOCCL_SHM_RANK=%d", rank), fmt.Sprintf("GOCCL_SHM_SIZE=%d", workers))
			out, err := c.Output()
			printed[rank], errs[rank] = string(out), err
		})
	}
	running.Wait()
	for rank := range workers {
		require.NoError(t, errs[rank], "rank %d", rank)
		want := ""
		if rank == 0 {
			want = steady(goroutines.String())
		}
		require.Equal(t, want, steady(printed[rank]), "rank %d", rank)
	}
}

// steady removes the seconds.
func steady(out string) string {
	return regexp.MustCompile(` +\d+\.\d\d  `).ReplaceAllString(out, " ")
}
