package launcher

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
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
				awaitOthers()
			}
			return
		}
		log.Fatal(dist.Spawn(func(context.Context, int) error { return dist.InitProcessGroup("ccl", dist.WithTimeout(-1)) }))
	}
	// Joins the others, which then wait for rank 0.
	programs["joins"] = func([]string) {
		log.Fatal(dist.Spawn(func(_ context.Context, rank int) error {
			if err := dist.InitProcessGroup("ccl", dist.WithTimeout(0)); err != nil {
				return err
			}
			fmt.Println("up")
			if rank == 0 {
				return sleepy()
			}
			return dist.Barrier()
		}))
	}
	// Joins the others without Spawn, and destroys the group, also before it runs on, or does not.
	programs["leaves"] = func(args []string) {
		err := dist.InitProcessGroup("ccl")
		if err == nil {
			err = dist.Barrier()
		}
		if err == nil && args[0] != "returns" {
			err = dist.DestroyProcessGroup()
		}
		if err != nil {
			log.Fatal(err)
		}
		if args[0] == "stays" {
			stay()
		}
	}
	// Writes its argument as the report of the rank, and ends with another one as the status.
	programs["foreign"] = func(args []string) {
		if err := os.WriteFile(os.Getenv("GOCCL_ERROR_FILE"), []byte(args[0]), 0o600); err != nil {
			panic(err)
		}
		os.Exit(number(args[1]))
	}
}

// awaitOthers waits until a rank of this job, of any transport, waits for others.
func awaitOthers() {
	address := net.JoinHostPort(os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT"))
	switch {
	case address != ":": // of several nodes
	case os.Getenv("GOCCL_TRANSPORT") != "tcp":
		fileOf(os.Getenv("GOCCL_SHM_NAME"))
		return
	default:
		for address = ""; address == ""; time.Sleep(time.Millisecond) {
			address, _ = launchenv.ReadAddress(os.Getenv, 1)
		}
	}
	for ; ; time.Sleep(time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
	}
}

// Ranks that wait for one that has ended with status 0, without a time limit, are told at once, on
// whichever node.
func TestEndBeforeJoin(t *testing.T) {
	for _, when := range []string{"early", "late"} {
		for _, transport := range []string{"shm", "tcp", "nodes"} {
			t.Run(when+"/"+transport, func(t *testing.T) {
				jobs := []*Spec{testJob(4, "absent", when)}
				if transport == "nodes" {
					jobs = nodeJobs(t, []int{2, 2}, "absent", when)
				} else {
					jobs[0].Variables = []string{"GOCCL_TRANSPORT=" + transport}
				}
				_, errs, _ := runNodes(t, jobs)
				var e *EndedError
				require.ErrorAs(t, errs[0], &e)
				require.Equal(t, CauseLeft, e.Cause, "%v", e)
				require.Equal(t, []int{2}, e.Blamed, "%v", e)
				require.Regexp(t, `peer lost: rank 2 \(pid \d+(, host \S+)?\) is gone\n`, e.Error())
				if transport != "nodes" { // there a rank may hear it from another one before its launcher does
					require.Contains(t, e.Error(), "rank 2 ended, with status 0, and did not join the others: peer lost: ")
				}
				require.Contains(t, e.Error(), "\n  rank 2: ended before, with exit status 0")
			})
		}
	}
}

// A rank whose failure a pipe hides has failed, and is to blame, whether it could say why or not. What
// to do stands at that rank only.
func TestFailureBehindPipe(t *testing.T) {
	const failed, vanished = "its program has failed", "its program has ended without leaving its group"
	for name, hidden := range map[string]string{
		"error": failed, "panic": failed, "return": "",
		"panic in a goroutine": vanished, "exit": vanished, "SIGKILL": vanished, "log.Fatal": vanished,
	} {
		t.Run(name, func(t *testing.T) {
			e := start(piped(testJob(4, "blame", name, "return it", "barrier"))).failure(t)
			require.Equal(t, []int{2}, e.Blamed, "%v", e)
			require.Equal(t, culprits[name].cause, e.Cause, "%v", e)
			if hidden != "" {
				require.Regexp(t, `^rank 2 \(pid \d+\) was the first to fail, after \S+: exit status 0, but `+hidden+` \(in a shell, see set -e and set -o pipefail\)\n`, e.Error())
				require.Equal(t, 1, strings.Count(e.Error(), "pipefail"), "%v", e)
			} else {
				require.NotContains(t, e.Error(), "pipefail")
			}
			if name == "panic in a goroutine" {
				require.Contains(t, e.Error(), culprits[name].says)
			}
			require.Equal(t, statusFailed, e.ExitCode())
		})
	}
	require.NoError(t, runError(piped(testJob(2, "echo", "all is well"))))
	// A failed call alone is no failure of the program.
	require.NoError(t, runError(testJob(1, "foreign", `{"kind":"call","pid":1}`, "0")))
	// A program that has left its group has not vanished, nor has one that nobody misses.
	require.NoError(t, runError(piped(testJob(3, "fails", "not at all"))))
	require.NoError(t, runError(piped(testJob(3, "leaves", "destroys"))))
	require.NoError(t, runError(piped(testJob(3, "leaves", "returns"))))
}

// inShell makes all ranks of a job shells that run the script, of which "$0" "$@" is the program.
func inShell(job *Spec, script string) *Spec {
	job.Program, job.Args = "/bin/sh", append([]string{"sh", "-c", script, self()}, job.Args[1:]...)
	return job
}

// A rank whose process ends with status 0 while its program runs has failed.
func TestDesertedProgram(t *testing.T) {
	const stillRan = "exit status 0, but its program still ran, and was ended (in a shell, see exec and wait)"
	e := start(inShell(testJob(2, "joins"), `"$0" "$@" & while [ ! -s $GOCCL_RESULT_FILE ]; do :; done; exit 0`)).failure(t)
	require.Contains(t, e.Error(), stillRan)
	require.Equal(t, statusFailed, e.ExitCode())

	fifo, open := gate(t)
	r := start(inShell(testJob(3, "joins"), `[ $RANK = 0 ] || exec "$0" "$@"; "$0" "$@" & : >`+fifo+`; exit 0`))
	r.out.Await(t, "up\n", 3)
	open()
	e = r.failure(t)
	require.Regexp(t, `^rank 0 \(pid \d+\) was the first to fail, after \S+: `+regexp.QuoteMeta(stillRan)+`\n`, e.Error())

}

// Other processes of a rank's group are no failure: helpers of a program that has ended, whoever was
// the rank's process, or a program that has left the others.
func TestRestOfGroup(t *testing.T) {
	for script, program := range map[string][]string{
		`sleep 1000 & "$0" "$@"; exit $?`:                                           {"fails", "not at all"},
		`sleep 1000 & exec "$0" "$@"`:                                               {"leaves", "returns"},
		`p=$GOCCL_RESULT_FILE.pipe; mkfifo $p; "$0" "$@" >$p & read up <$p; exit 0`: {"leaves", "stays"},
	} {
		outcome, err := inShell(testJob(3, program...), script).Run(t.Context())
		require.NoError(t, err, script)
		require.Equal(t, "ranks 0-2: "+withRest, outcome.Warning)
	}

	// One that ends by itself after its program may need longer than others.
	for _, program := range [][]string{{"leaves", "returns"}, {"echo", "hello"}} {
		require.NoError(t, runError(inShell(testJob(3, program...), `p=$GOCCL_RESULT_FILE.pipe; mkfifo $p; cat <$p & exec "$0" "$@" >$p`)))
	}
}

// A shell that goes on after its program has failed is told of set -e.
func TestFailureBeforeAnotherCommand(t *testing.T) {
	e := start(inShell(testJob(3, "fails", "in no other way"), `"$0" "$@"; exit 0`)).failure(t)
	require.Regexp(t, `^rank 1 \(pid \d+\) was the first to fail, after \S+: exit status 0, but its program has failed \(in a shell, see set -e `, e.Error())
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

// An interrupt while a node is silent, for one rank of which others have waited, leaves no rank of it
// out.
func TestInterruptWhileNodeIsSilent(t *testing.T) {
	jobs := nodeJobs(t, []int{1, 2}, "foreign", `{"kind":"error","message":"late","because":"timeout","ranks":[2]}`, "1")
	first := start(jobs[0])
	ctx, l := connectInPlaceOf(t, jobs[1])
	_, err := Exchange(ctx, l, nodeFacts{Ranks: 2, Host: "?"})
	require.NoError(t, err)
	for m := range l.messages {
		require.NoError(t, m.err)
		if m.Watch { // a rank has failed
			break
		}
	}
	first.signals <- syscall.SIGINT
	e := first.failure(t)
	require.Equal(t, []int{1, 2}, e.Blamed)
	require.Regexp(t, `^node 1 \(host \?, ranks 1, 2\) was lost, after \S+: it does not answer: `, e.Error())
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
