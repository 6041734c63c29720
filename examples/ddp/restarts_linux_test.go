package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/launch"
)

var trainings = flag.Int("trainings", 3, "trainings of TestRestarts")

// lines gets the output of a job, and notes when it starts anew, and when ranks have come together.
type lines struct {
	sync.Mutex
	bytes.Buffer
	restarts, joined []time.Time
}

func (l *lines) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	if bytes.Contains(p, []byte("launch: restart ")) {
		l.restarts = append(l.restarts, time.Now())
	}
	if bytes.Contains(p, []byte("[0] model ")) {
		l.joined = append(l.joined, time.Now())
	}
	return l.Buffer.Write(p)
}

// joinedAfter returns when ranks have come together in the start after a kill, if they have before
// the next kill.
func (l *lines) joinedAfter(kill, next time.Time) (at time.Time, ok bool) {
	i := slices.IndexFunc(l.restarts, kill.Before)
	if i < 0 {
		return at, false
	}
	j := slices.IndexFunc(l.joined, l.restarts[i].Before)
	if j < 0 || l.joined[j].After(next) {
		return at, false
	}
	return l.joined[j], true
}

// children returns the processes that this one has started, which of them are ranks, and the names
// of their jobs.
func children(t *testing.T) (pids, ranks []int, jobs []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, file := range stats {
		text, _ := os.ReadFile(file) // the process may have ended
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		require.NoError(t, err)
		pids = append(pids, pid)
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if m := jobName.FindSubmatch(environment); m != nil {
			ranks, jobs = append(ranks, pid), append(jobs, string(m[1]))
		}
	}
	return pids, ranks, jobs
}

var jobName = regexp.MustCompile(`GOCCL_SHM_NAME=/(goccl-[0-9a-f]+)`)

// A training of which a rank, or all processes but the launcher, are killed at any moment, ends with
// the weights of one that nobody has disturbed, and leaves nothing behind. -trainings has how many;
// -v prints how long it takes from the kill until the ranks of the next start have come together.
func TestRestarts(t *testing.T) {
	const ranks, epochs = 3, 8
	shared := t.TempDir()
	t.Setenv("TMPDIR", shared)
	train := func(dir string, out *lines) *launch.Job {
		return &launch.Job{
			Ranks: ranks, Program: os.Args[0], Args: []string{"-epochs", strconv.Itoa(epochs), "-checkpoint", dir},
			Env: append(os.Environ(), asProgram+"=1"), Stdout: out, Stderr: out, Pin: launch.PinOff, MaxRestarts: 20,
		}
	}
	undisturbed := &lines{}
	begun := time.Now()
	_, err := train(t.TempDir(), undisturbed).Run(t.Context())
	require.NoError(t, err, undisturbed.String())
	took := time.Since(begun)
	result := func(out *lines) []string {
		all := learned.FindAllString(strings.ReplaceAll(out.String(), "[0] ", ""), -1)
		return all[max(0, len(all)-2):]
	}
	want := result(undisturbed)
	require.Len(t, want, 2)

	var pauses []time.Duration
	for n := range *trainings {
		random := rand.New(rand.NewPCG(uint64(n), 7))
		dir, out, ended := t.TempDir(), &lines{}, make(chan error, 1)
		go func() {
			_, err := train(dir, out).Run(t.Context())
			ended <- err
		}()
		var jobs, kills []string
		var killed []time.Time
		for range 1 + random.IntN(3) {
			select {
			case err = <-ended:
				ended <- err
			case <-time.After(time.Duration(random.Int64N(int64(took)))):
			}
			pids, ranks, names := children(t)
			jobs = append(jobs, names...)
			if len(ranks) == 0 {
				continue // the job has ended, or pauses
			}
			if random.IntN(2) == 0 {
				pids = []int{ranks[random.IntN(len(ranks))]}
			}
			killed = append(killed, time.Now())
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
			kills = append(kills, fmt.Sprint(len(pids)))
		}

		require.NoError(t, <-ended, "training %d: %s", n, out)
		require.Equal(t, want, result(out), "training %d, killed %v: %s", n, kills, out)
		if killed = append(killed, time.Now()); len(killed) > 1 { // later pauses are longer
			if joined, ok := out.joinedAfter(killed[0], killed[1]); ok {
				pauses = append(pauses, joined.Sub(killed[0]))
			}
		}

		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 2, "training %d", n)
		pids, _, _ := children(t)
		require.Empty(t, pids, "training %d", n)
		for _, job := range jobs {
			left, err := filepath.Glob("/dev/shm/*" + job + "*")
			require.NoError(t, err)
			require.Empty(t, left, "training %d", n)
		}
	}

	left, err := filepath.Glob(filepath.Join(shared, "goccl-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	slices.Sort(pauses)
	if len(pauses) > 0 {
		t.Logf("%d trainings of %v; from the first kill until the ranks had joined again, %d times: %v at least, %v in the middle, %v at most",
			*trainings, took, len(pauses), pauses[0], pauses[len(pauses)/2], pauses[len(pauses)-1])
	}
}
