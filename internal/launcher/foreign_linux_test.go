package launcher

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/launchenv"
)

func init() {
	// Rank 2 ends with status 0 before it joins the others, at once or when they wait.
	programs["absent"] = func(args []string) {
		if os.Getenv("RANK") == "2" {
			if args[0] == "late" {
				fileOf(os.Getenv("GOCCL_SHM_NAME"))
			}
			return
		}
		log.Fatal(dist.Spawn(func(context.Context, int) error { return dist.InitProcessGroup("ccl", dist.WithTimeout(0)) }))
	}
	// Writes its argument as the report of the rank, and ends with another one as the status.
	programs["foreign"] = func(args []string) {
		if err := os.WriteFile(os.Getenv("GOCCL_ERROR_FILE"), []byte(args[0]), 0o600); err != nil {
			panic(err)
		}
		os.Exit(number(args[1]))
	}
}

// Ranks that wait for one that has ended with status 0, without a time limit, are told at once.
func TestEndBeforeJoin(t *testing.T) {
	for _, when := range []string{"early", "late"} {
		t.Run(when, func(t *testing.T) {
			e := start(testJob(4, "absent", when)).failure(t)
			require.Equal(t, CauseLeft, e.Cause, "%v", e)
			require.Equal(t, []int{2}, e.Blamed, "%v", e)
			require.Contains(t, e.Error(), "rank 2 ended, with status 0, and did not join the others: ")
			require.Contains(t, e.Error(), "\n  rank 2: ended before, with exit status 0")
		})
	}
}

// piped makes all ranks of a job programs of a pipe, whose status is that of cat.
func piped(job *Spec) *Spec {
	job.Program, job.Args = "/bin/sh", append([]string{"sh", "-c", `"$0" "$@" | cat`, self()}, job.Args[1:]...)
	return job
}

// A rank whose failure a pipe hides has failed, and is to blame.
func TestFailureBehindPipe(t *testing.T) {
	for _, name := range []string{"error", "panic", "return"} {
		t.Run(name, func(t *testing.T) {
			e := start(piped(testJob(4, "blame", name, "return it", "barrier"))).failure(t)
			require.Equal(t, []int{2}, e.Blamed, "%v", e)
			require.Equal(t, culprits[name].cause, e.Cause, "%v", e)
			require.Contains(t, e.Error(), "exit status 0, but its program has failed (in a shell, see set -o pipefail)")
			require.Equal(t, statusFailed, e.ExitCode())
		})
	}
	require.NoError(t, runError(piped(testJob(2, "echo", "all is well"))))
	// A failed call alone is no failure of the program.
	require.NoError(t, runError(testJob(1, "foreign", `{"kind":"call","pid":1}`, "0")))
}

// What a shell repeats after a failure may succeed.
func TestRepeatedRank(t *testing.T) {
	job := testJob(2)
	job.Program, job.Args = "/bin/sh", []string{"sh", "-c", `"$0" fails "in no other way" || "$0" fails "not at all"`, self()}
	require.NoError(t, runError(job))
}

// hostileReports are what a process that is no rank may write.
var hostileReports = []string{
	`{"because":"mismatch","ranks":[7,-1]}`, `{"because":"timeout","ranks":[9],"awaited":-5}`, `{"because":"peer_lost","ranks":[1000000]}`,
	`{"because":"aborted","ranks":[]}`, `{"because":"mismatch","ranks":[1,1,1],"rank":77}`, `{"because":"stuck","ranks":[0],"awaited":1}`,
	`{"because":"canceled","ranks":[2]}`, `{"rank":-1,"frames":[{}]}`, `null`, `{`, ``,
}

// Whatever ranks report, the job fails with an error that names ranks of the job.
func TestForeignReports(t *testing.T) {
	for _, text := range hostileReports {
		e := start(testJob(2, "foreign", text, "3")).failure(t)
		require.Subset(t, []int{0, 1}, e.Blamed, "%v", e)
		require.Equal(t, 3, e.ExitCode(), text)
	}
}

// The verdict on any reports names ranks of the job, each once, and has a text.
func FuzzReports(f *testing.F) {
	for i, text := range hostileReports {
		f.Add(text, hostileReports[(i+1)%len(hostileReports)], hostileReports[(i+3)%len(hostileReports)], byte(i))
	}
	f.Fuzz(func(t *testing.T, a, b, c string, ends byte) {
		ranks := make([]Rank, 3)
		for i, text := range []string{a, b, c} {
			r := &ranks[i]
			r.PID, r.ended, r.Exit = i+2, ends>>i&1 == 0, int(ends>>(3+i)&1)
			if report := new(launchenv.Report); json.Unmarshal([]byte(text), report) == nil {
				r.Report = report
			}
		}
		cause, blamed, reporter := blame(ranks, 1)
		e := &EndedError{Ranks: ranks, Cause: cause, Blamed: blamed, First: blamed[0], Reporter: reporter, Seen: 1, After: time.Second}
		for _, i := range append(slices.Clone(blamed), reporter, findLastWaiting(ranks, blamed[0])+1) {
			if i < 0 || i > len(ranks) {
				t.Errorf("%v names rank %d", e, i)
			}
		}
		if len(slices.Compact(slices.Sorted(slices.Values(blamed)))) != len(blamed) {
			t.Errorf("%v names a rank twice", blamed)
		}
		_ = e.ExitCode()
		for i := range ranks {
			_ = e.Error() + e.CauseOf(i)
		}
	})
}
