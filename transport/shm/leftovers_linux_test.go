package shm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
)

// leaveBehind makes the segment of a job whose rank 0 is dead.
func leaveBehind(t *testing.T, name string) Leftover {
	t.Helper()
	dead := startRank(t, rankSpec{Job: Job{Name: name, Rank: 0, Size: 2}, Stop: "named"})
	dead.await("at named")
	dead.kill()
	all, err := Leftovers()
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	return all[0]
}

// Segments of living jobs and files with other names are not leftovers.
func TestLeftoversAreDead(t *testing.T) {
	useOwnDirectory(t)
	l := leaveBehind(t, "job")
	other := filepath.Join(directory, filePrefix()+"x")
	renamed := func(to string) {
		t.Helper()
		if err := os.Rename(l.Path, to); err != nil {
			t.Fatal(err)
		}
		l.Path = to
	}
	for _, to := range []string{other, filepath.Join(directory, "goccl-4711-job"), filepath.Join(directory, "job")} {
		renamed(to)
		if all, err := Leftovers(); err != nil || len(all) > 0 {
			t.Errorf("as %s: %+v, %v", to, all, err)
		}
		if err := l.Remove(); err == nil || !strings.Contains(err.Error(), `belongs to job "job" by its header`) {
			t.Errorf("as %s: %v", to, err)
		}
	}
	renamed(filePath("job"))
	// The lock of any rank counts, not only rank 0's.
	f, err := os.OpenFile(l.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := tryLock(int(f.Fd()), 1); !ok {
		t.Fatal(err)
	}
	if all, err := Leftovers(); err != nil || len(all) > 0 {
		t.Errorf("locked: %+v, %v", all, err)
	}
	if err := l.Remove(); err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("locked: %v", err)
	}
	f.Close()
	removeLeftovers(t, 1)
}

// RemoveLeftovers keeps files of jobs with other names, and segments of living jobs.
func TestRemoveLeftovers(t *testing.T) {
	useOwnDirectory(t)
	for _, name := range []string{"job-1", "job-2", "jobs-1"} {
		dead := startRank(t, rankSpec{Job: Job{Name: name, Rank: 0, Size: 2}, Stop: "named"})
		dead.await("at named")
		dead.kill()
	}
	rank0 := startRank(t, rankSpec{Job: Job{Name: "job-3", Rank: 0, Size: 2}})
	rank0.await("at named")
	if err := RemoveLeftovers("job-"); err == nil || !strings.Contains(err.Error(), "is in use") || strings.Contains(err.Error(), "job-2") {
		t.Errorf("got %v", err)
	}
	if leftBehind := files(t); !slices.Equal(leftBehind, []string{filePrefix() + "job-3", filePrefix() + "jobs-1"}) {
		t.Errorf("%q are there", leftBehind)
	}
	startRank(t, rankSpec{Job: Job{Name: "job-3", Rank: 1, Size: 2}}).joined()
	rank0.joined()
	for range 2 {
		if err := RemoveLeftovers("job"); err != nil {
			t.Error(err)
		}
	}
}

// A segment whose creator runs is not a leftover, also if the creator's lock is free.
func TestLeftoversOfTheLiving(t *testing.T) {
	useOwnDirectory(t)
	l := leaveBehind(t, "job")
	f, err := os.OpenFile(l.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	start, _ := startOf(os.Getpid())
	file, err := mapFile(int(f.Fd()), l.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	p := at[seat](file, seatsOffset)
	pid := p.pid
	p.pid = int32(os.Getpid())
	for _, same := range []bool{true, false} {
		p.start = start
		if !same {
			p.start-- // another process had this id before
		}
		all, err := Leftovers()
		if err != nil || (len(all) == 0) != same {
			t.Errorf("same %v: %+v, %v", same, all, err)
		}
	}
	p.pid = pid
	if err := file.unmap(); err != nil {
		t.Error(err)
	}
	f.Close()
	removeLeftovers(t, 1)
}

// If two processes remove the same leftover, the slower one does not remove the segment of a job that
// has taken the name meanwhile.
func TestRemoveHitsNoOther(t *testing.T) {
	useOwnDirectory(t)
	l := leaveBehind(t, "job")
	var rank0 *rank
	restore := stopAt(func(point string) {
		if point != "judged" || rank0 != nil {
			return
		}
		rank0 = &rank{} // not again
		if err := l.Remove(); err != nil {
			t.Error(err)
		}
		rank0 = startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}})
		rank0.await("at named")
	})
	defer restore()
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
	restore()
	if leftBehind := files(t); len(leftBehind) != 1 {
		t.Errorf("%q are there, want the new job's segment", leftBehind)
	}
	if err := l.Remove(); err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("of the new job: %v", err)
	}
	startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 2}}).joined()
	rank0.joined()
}

// Only one process at a time removes a leftover.
func TestRemoveIsAlone(t *testing.T) {
	useOwnDirectory(t)
	l := leaveBehind(t, "job")
	f, err := os.OpenFile(l.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := tryLock(int(f.Fd()), removalLock); !ok {
		t.Fatal(err)
	}
	if err := l.Remove(); err == nil || !strings.Contains(err.Error(), "is being removed by another process") {
		t.Errorf("got %v", err)
	}
	f.Close()
	removeLeftovers(t, 1)
}

// A rank that has opened a leftover which is then removed keeps looking for its own job's segment.
func TestLeftoverRemovedUnderARank(t *testing.T) {
	useOwnDirectory(t)
	l := leaveBehind(t, "job")
	f, err := findFile(l.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Remove(); err != nil {
		t.Fatal(err)
	}
	h, err := newHeader(Job{Name: "job", Rank: 1, Size: 2}, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	s := &segment{header: h, path: l.Path, rank: 1, fd: f.fd}
	if again, err := s.join(f, &waiting{ctx: context.Background()}); !again || err != nil {
		t.Errorf("got %v, %v", again, err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// A rank that has opened the segment of a rank 0 that then gave up learns the reason.
func TestRankZeroGaveUpUnderARank(t *testing.T) {
	useOwnDirectory(t)
	rank0 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}, Stop: "named", Timeout: time.Millisecond})
	rank0.await("at named")
	f, err := findFile(filePath("job"))
	if err != nil {
		t.Fatal(err)
	}
	rank0.goOn()
	rank0.result()
	if err := f.read(); err != nil {
		t.Fatal(err)
	}
	h, err := newHeader(Job{Name: "job", Rank: 1, Size: 2}, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	s := &segment{header: h, path: f.path, rank: 1, fd: f.fd}
	var late *transport.TimeoutError
	if again, err := s.join(f, &waiting{ctx: context.Background()}); again || !errors.As(err, &late) || late.By != 0 || !slices.Equal(late.Missing, []int{1}) {
		t.Errorf("got %v, %v", again, err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// A file with a name that no job gives is no leftover, even if its contents are one: its name may hold what a terminal takes for a command.
// Whoever may write to the directory can make such a link.
func TestLeftoversHaveNamesOfJobs(t *testing.T) {
	useOwnDirectory(t)
	l := leaveBehind(t, "job")
	n := notice{ranks: 2, pid: 1, namespace: "pid:[1]", text: "x"}
	odd := []string{l.Path + "~\x1b[2J", l.Path + "~1\n", l.Path + "~", l.Path + "~~1", filepath.Join(directory, filePrefix()+"\x1b[2Jjob")}
	for _, path := range odd {
		if err := os.Link(l.Path, path); err != nil {
			t.Fatal(err)
		}
		odd = append(odd, path+"\x1bnotice")
		if !n.post(path + "\x1bnotice") {
			t.Fatal("no link could be made")
		}
	}
	all, err := Leftovers()
	if err != nil || len(all) != 1 || all[0].Path != l.Path {
		t.Errorf("%+v, %v", all, err)
	}
	if err := RemoveLeftovers(""); err != nil {
		t.Errorf("%q", err)
	}
	if leftBehind := files(t); len(leftBehind) != len(odd) {
		t.Errorf("left are %q, want %q", leftBehind, odd)
	}
	for _, path := range odd {
		_ = os.Remove(path)
	}
}
