package launcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/dist"
)

func init() {
	// Fails as its argument says, on rank 1 or on all ranks.
	programs["fails"] = func(args []string) {
		rank, err := strconv.Atoi(os.Getenv("RANK"))
		if err != nil {
			panic(err)
		}
		switch args[0] {
		case "everywhere", "without goccl":
			if err := os.WriteFile(filepath.Join(args[1], fmt.Sprint(rank)), nil, 0o600); err != nil {
				panic(err)
			}
			for all := []string(nil); len(all) < 3; { // a machine may be slow to start them
				all, _ = filepath.Glob(filepath.Join(args[1], "*"))
			}
		}
		switch args[0] {
		case "without goccl":
			log.SetFlags(log.LstdFlags | log.Lmicroseconds)
			log.Fatalf("rank %d: shard-%d is missing", rank, rank)
		case "few files":
			if rank == 1 {
				_, files, err := os.Pipe() // the runtime's own files are open, too
				limit := uint64(files.Fd()) + 1
				if err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit})); err != nil {
					panic(err)
				}
			}
		case "small files":
			if rank == 0 {
				if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 16, Max: 1 << 16}); err != nil {
					panic(err)
				}
			}
		case "timeout":
			if rank == 1 {
				os.Setenv("GOCCL_TIMEOUT", "7s")
			}
		}
		err = dist.Spawn(func(_ context.Context, rank int) error {
			if args[0] == "everywhere" {
				return fmt.Errorf("rank %d: shard-%d is missing", rank, rank)
			}
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			if rank == 1 && args[0] != "not at all" {
				return fmt.Errorf("load %q: no such file", "shard-5")
			}
			return dist.Barrier()
		})
		if err == nil {
			return
		}
		if args[0] == "logs JSON" {
			slog.New(slog.NewJSONHandler(os.Stderr, nil)).Error("failed", "err", err)
			os.Exit(1)
		}
		log.Fatal(err)
	}
}

func init() {
	// Rank 1 interrupts itself once the others wait for a signal.
	programs["interrupted"] = func(args []string) {
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
		defer stop()
		if err := dist.Spawn(func(_ context.Context, rank int) error {
			if err := os.WriteFile(filepath.Join(args[0], fmt.Sprint(rank)), nil, 0o600); err != nil {
				return err
			}
			for all := []string(nil); rank == 1 && len(all) < 3; {
				all, _ = filepath.Glob(filepath.Join(args[0], "*"))
			}
			if rank == 1 {
				return errors.Join(unix.Kill(os.Getpid(), unix.SIGTERM), errors.New("interrupted"))
			}
			<-ctx.Done()
			return errors.New("interrupted")
		}); err != nil {
			log.Fatal(err)
		}
	}
}

func TestHeadlines(t *testing.T) {
	for _, c := range []struct{ way, want string }{
		{"few files", `^rank 1 \(pid \d+\) was the first to fail, after \S+: exit status 1; raise ulimit -n\n.*\n.*: too many open files`},
		{"small files", `^rank 0 \(pid \d+\) was the first to fail, after \S+: exit status 1\n.*\n.*: file too large \(see ulimit -f\)`},
		{"timeout", `^rank 1 \(pid \d+\) has another configuration than the others: the job failed after `},
		{"everywhere", `^(all ranks|ranks .*) failed alike: the job failed after `},
		{"without goccl", `^(all ranks|ranks .*) failed alike: the job failed after `},
		{"logs JSON", `^rank 1 \(pid \d+\) was the first to fail, after \S+: exit status 1\n  the last that it wrote to standard error:\n    \{.*no such file.*\}\n  rank`},
	} {
		t.Run(c.way, func(t *testing.T) {
			e := start(testJob(3, "fails", c.way, t.TempDir())).failure(t)
			require.Regexp(t, c.want, e.Error())
			require.Equal(t, 1, e.ExitCode())
		})
	}
}

// How ranks end whose Go runtime cannot start, or finds no room for a thread.
func TestHeadlinesOfCrashes(t *testing.T) {
	for text, want := range map[string]string{
		`fatal error: failed to reserve page summary memory\n\nruntime stack:\nruntime.throw({0x1, 0x2})\n\t/go/src/runtime/panic.go:1 +0x1\n`:                          `^rank 1 \(pid \d+\) was the first to fail, after \S+: exit status 2\n  fatal error: failed to reserve page summary memory\n  rank`,
		`runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort\nPC=0x1 m=5 sigcode=1\n\ngoroutine 0 [idle]:\nruntime: g 0: unknown pc\n`: `^rank 1 \(pid \d+\) was the first to fail, after \S+: exit status 2; raise ulimit -u, or the pids.max of the control group\n  runtime/cgo: pthread_create failed: `,
	} {
		script := `[ $RANK = 1 ] || exec "$0" "$@"; printf '` + text + `' >&2; exit 2`
		e := start(inShell(testJob(3, "sleep"), script)).failure(t)
		require.Regexp(t, want, e.Error())
		require.NotContains(t, e.Error(), "the last that it wrote")
	}
}

// A rank that has used the CPU time that it may have ends by SIGXCPU, or is killed. So is a program in its shell.
func TestHeadlinesOfTime(t *testing.T) {
	for script, want := range map[string]string{
		`ulimit -t 1; while :; do :; done`:    `SIGKILL \(killed\); its CPU time was \S+, and ulimit -t is 1s\n`,
		`kill -XCPU $$`:                       `SIGXCPU \(.*\); raise ulimit -t\n`,
		`/bin/sh -c 'kill -XCPU $$'; exit $?`: `exit status 152 \(128 \+ SIGXCPU\); raise ulimit -t\n`,
		`ulimit -t 100000; kill -KILL $$`:     `SIGKILL \(killed\); if nobody has killed it, see dmesg, and the memory.events of its control group\n`,
	} {
		e := start(inShell(testJob(3, "sleep"), `[ $RANK = 1 ] || exec "$0" "$@"; `+script)).failure(t)
		require.Regexp(t, `^rank 1 \(pid \d+\) was the first to fail, after \S+: `+want, e.Error())
	}
}

// A rank of another build is named if the job succeeds, too.
func TestOtherBuild(t *testing.T) {
	job := otherBuild(t)
	outcome, err := job.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, "rank 1 runs another build of the program than rank 0", outcome.Warning)

	job.Args[len(job.Args)-1] = "timeout"
	e := start(job).failure(t)
	require.Regexp(t, `^rank 1 \(pid \d+\) has another configuration than the others: .*\n  rank 1 runs another build of the program than rank 0\n`, e.Error())
}

// otherBuild returns a job whose rank 1 runs another build, and whose last argument says how it fails.
func otherBuild(t *testing.T) *Spec {
	t.Helper()
	other := filepath.Join(t.TempDir(), "other")
	file, err := os.ReadFile(self())
	require.NoError(t, err)
	id := bytes.Index(file, []byte("Go\x00\x00")) + 4 // a note
	require.Greater(t, id, 4)
	file[id+3]++
	require.NoError(t, os.WriteFile(other, file, 0o777))

	job := testJob(3)
	job.Program, job.Args = "/bin/sh", []string{"sh", "-c", `test $RANK = 1 && exec "$0" "$@"; shift; exec "$RUN" fails "$@"`, other, "fails", "not at all"}
	job.Variables = []string{"RUN=" + self()}
	return job
}

// Nor is it to blame for the failure of another one.
func TestFailureBesideOtherBuild(t *testing.T) {
	job := otherBuild(t)
	job.Args[len(job.Args)-1] = "small files"
	e := start(job).failure(t)
	require.Regexp(t, `^rank 0 \(pid \d+\) was the first to fail, .*\n  rank 1 runs another build of the program than rank 0\n(?s).*: file too large`, e.Error())
}

// Ranks that end as they were asked to, by chance like the first one, are not to blame.
func TestEndsAsAsked(t *testing.T) {
	job := testJob(3)
	const script = `if [ $RANK = 1 ]; then while [ ! -e "$0/0" ] || [ ! -e "$0/2" ]; do :; done; exit 1; fi
		trap "exit 1" TERM; : >"$0/$RANK"; while :; do :; done`
	job.Program, job.Args = "/bin/sh", []string{"sh", "-c", script, t.TempDir()}
	e := start(job).failure(t)
	require.Regexp(t, `^rank 1 \(pid \d+\) was the first to fail, .*: exit status 1\n  ranks 0, 2: ended after SIGTERM, with exit status 1$`, e.Error())
}

// Nor are ranks that were told to end, and say so, as the first one did which was told by somebody else.
func TestSaysThatItWasAsked(t *testing.T) {
	e := start(testJob(3, "interrupted", t.TempDir())).failure(t)
	require.Regexp(t, `^rank 1 \(pid \d+\) was the first to fail, .*: exit status 1\n.*\n.* rank 1: interrupted\n  ranks 0, 2: ended after SIGTERM, with exit status 1$`, e.Error())
}

// A rank that gets so few descriptors that package os would crash says so, and not the Go runtime.
// How many are too few depends on the files that the Go runtime has open on this machine.
func TestTooFewFiles(t *testing.T) {
	for _, limit := range []string{"7", "6", "5"} {
		job := testJob(3)
		job.Program, job.Args = "/bin/sh", []string{"sh", "-c", `test $RANK = 1 && ulimit -n $LIMIT; exec "$0" fails "in no other way"`, self()}
		job.Variables = []string{"LIMIT=" + limit}
		e := start(job).failure(t)
		if strings.Contains(e.Error(), "no such file") { // it could join
			continue
		}
		require.Regexp(t, `^rank 1 \(pid \d+\) was the first to fail, after \S+: exit status 1; raise ulimit -n\n.*\n.*: this process can open no file in /dev/shm: too many open files \(see ulimit -n\)\n`, e.Error())
		return
	}
	t.Error("five descriptors are enough")
}
