package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// A rank that cannot open the job's file immediately tells the ranks that wait for it.
func TestRankCannotReachTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		unable int
		text   string
	}{
		"rank 0 has no memory":          {0, "no space left on device"},
		"rank 2 has no file descriptor": {2, "too many open files"},
	} {
		t.Run(name, func(t *testing.T) {
			useOwnDirectory(t)
			defer JoinWith(small)()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var once sync.Once
			attached, restoreFiles := make(chan struct{}, 3), func() {}
			defer stopAt(func(point string) {
				switch point {
				case "attached":
					attached <- struct{}{}
				case "noticed": // the other ranks, which are in this process as well, can open files again
					once.Do(restoreFiles)
				}
			})()
			errs := make([]error, 3)
			join := func(r int) { _, errs[r] = Join(ctx, Job{Name: "job", Rank: r, Size: 3}) }
			var all sync.WaitGroup
			for r := range 3 {
				if r != c.unable {
					all.Go(func() { join(r) })
				}
			}
			if c.unable == 0 {
				fallocate = func(int, uint32, int64, int64) error { return unix.ENOSPC }
				defer func() { fallocate = unix.Fallocate }()
			} else {
				<-attached
				<-attached // from now on they cannot open files
				restoreFiles = limitFiles()
			}
			join(c.unable)
			once.Do(restoreFiles)
			all.Wait()
			if ctx.Err() != nil {
				t.Error("they waited for each other")
			}
			for r, err := range errs {
				aborted, ok := errors.AsType[*transport.AbortedError](err)
				if err == nil || !strings.Contains(err.Error(), c.text) || r != c.unable && (!ok || aborted.By != c.unable) {
					t.Errorf("rank %d: %v", r, err)
				}
			}
		})
	}
}

// Ranks that wait for one which cannot come are told why, unless a job of their name is there.
func TestRefuse(t *testing.T) {
	useOwnDirectory(t)
	defer JoinWith(small)()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	job := &transport.Job{Key: "job", Attempt: 1, Size: 3}
	var errs [3]error
	var all sync.WaitGroup
	for r := 1; r < 3; r++ {
		all.Go(func() { _, errs[r] = Join(ctx, Job{Name: "job-1", Rank: r, Size: 3}) })
	}
	Refuse(ctx, job, errors.New("no port"))
	all.Wait()
	for r, err := range errs[1:] {
		aborted, ok := errors.AsType[*transport.AbortedError](err)
		if !ok || aborted.By != 0 || !strings.Contains(err.Error(), "cannot join: no port") {
			t.Errorf("rank %d: %v", r+1, err)
		}
	}

	// A process that is none of the ranks is told as such, also if rank 0 has made the file.
	for r := range 2 {
		all.Go(func() { _, errs[r] = Join(ctx, Job{Name: "job-1", Rank: r, Size: 3}) })
	}
	Refuse(ctx, &transport.Job{Key: "job", Attempt: 1, Size: 3, Rank: 3}, errors.New("no such rank"))
	all.Wait()
	for r, err := range errs[:2] {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d cannot join: no such rank", os.Getpid())) || strings.Contains(err.Error(), "rank 3") {
			t.Errorf("rank %d: %v", r, err)
		}
	}

	rank0 := startRank(t, rankSpec{Job: Job{Name: "job-1", Rank: 0, Size: 3}, Stop: "named"})
	rank0.await("at named")
	Refuse(ctx, job, errors.New("no port"))
	if h, err := newHeader(jobOf(job), 1); err != nil || h.checkNotice() != nil {
		t.Errorf("a job of that name is told: %v, %v", err, h.checkNotice())
	}
	rank0.kill()
	removeLeftovers(t, 1)
}

// A rank that comes when a rank of another size has ended the gathering, and rank 0 has removed the
// file, learns of it.
func TestDifferenceIsTold(t *testing.T) {
	useOwnDirectory(t)
	defer JoinWith(small)()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	named, noticed, all := make(chan struct{}), make(chan struct{}), sync.WaitGroup{}
	defer stopAt(func(point string) {
		switch point {
		case "named":
			close(named)
		case "noticed":
			close(noticed)
		}
	})()
	var errs [3]error
	join := func(rank, size int) { _, errs[rank] = Join(ctx, Job{Name: "job", Rank: rank, Size: size}) }
	hasLeft := make(chan struct{})
	all.Go(func() { defer close(hasLeft); join(0, 3) })
	<-named
	all.Go(func() { join(1, 4) })
	<-hasLeft
	select {
	case <-noticed:
	case <-ctx.Done():
	}
	join(2, 3)
	all.Wait()
	for rank, err := range errs {
		aborted, ok := errors.AsType[*transport.AbortedError](err)
		if ctx.Err() != nil || err == nil || !strings.Contains(err.Error(), "it is for 3 ranks, this process is one of 4") || rank != 1 && (!ok || aborted.By != 1) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// A notice of a rank that was killed meanwhile, or of another job's rank, never ends a later job.
func TestStaleNotices(t *testing.T) {
	start, err := ownStart()
	now := time.Duration(sinceBoot())
	namespace, err1 := pidNamespace()
	dead := exec.Command("true")
	if err := errors.Join(err, err1, dead.Run()); err != nil {
		t.Fatal(err)
	}
	here := notice{rank: 1, ranks: 2, pid: os.Getpid(), namespace: namespace, made: now, text: "no"}
	change := func(f func(*notice)) string {
		n := here
		f(&n)
		return n.String()
	}
	for name, c := range map[string]struct {
		target     string
		secret     string
		isLeftover bool // and the next job removes it, unless stays is set
		stays      bool
	}{
		"of a dead process":        {target: change(func(n *notice) { n.pid = dead.Process.Pid }), isLeftover: true},
		"before this process":      {target: change(func(n *notice) { n.made = time.Duration(start)*tick - 1 }), isLeftover: true},
		"long ago":                 {target: change(func(n *notice) { n.made -= noticeLimit }), isLeftover: true},
		"of another machine's run": {target: change(func(n *notice) { n.made += time.Hour }), isLeftover: true},
		"of another namespace":     {target: change(func(n *notice) { n.namespace = "pid:[1]" }), stays: true},
		"of another secret":        {target: here.String(), secret: "other", stays: true},
		"no notice":                {target: "/etc/passwd", stays: true},
		"cut short":                {target: noticeMagic + " 1 1", stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			useOwnDirectory(t)
			defer JoinWith(small)()
			h, err := newHeader(Job{Name: "job", Size: 2, Secret: c.secret}, 1)
			if err != nil {
				t.Fatal(err)
			}
			path := h.noticePath()
			put := func() {
				t.Helper()
				if err := os.Symlink(c.target, path); err != nil {
					t.Fatal(err)
				}
			}
			put()
			if all, err := Leftovers(); err != nil || (len(all) == 1) != c.isLeftover || c.isLeftover && (all[0].Path != path || all[0].Job != "job" || all[0].Ranks != 2) {
				t.Errorf("leftovers: %+v, %v", all, err)
			}
			if err := (Leftover{Path: path}).Remove(); (err == nil) != c.isLeftover {
				t.Errorf("Remove: %v", err)
			}
			if c.isLeftover {
				put()
			}
			var all sync.WaitGroup
			for r := range 2 {
				all.Go(func() {
					ep, err := Join(t.Context(), Job{Name: "job", Rank: r, Size: 2})
					if err == nil {
						err = errors.Join(ep.Close(), ep.Free())
					}
					if err != nil {
						t.Errorf("rank %d: %v", r, err)
					}
				})
			}
			all.Wait()
			if _, err := os.Lstat(path); (err == nil) != c.stays {
				t.Errorf("after the job: %v", err)
			}
			_ = os.Remove(path)
		})
	}
}

// The text of a notice is one printable line. Links of other users are not notices.
func TestNotices(t *testing.T) {
	useOwnDirectory(t)
	path := directory + "/notice"
	n := notice{rank: 3, ranks: 4, pid: 4, namespace: "pid:[5]", made: 6, text: "a\nb \x1b[31m" + strings.Repeat("ä", 1000)}.clean()
	if len(n.text) > noticeText || !strings.HasPrefix(n.text, "a b  [31mä") || !n.post(path) || n.post(path) {
		t.Errorf("%q", n.text)
	}
	if got, ok := readNotice(path); !ok || got != n {
		t.Errorf("%+v, %v", got, ok)
	}
	if os.Geteuid() == 0 {
		if err := os.Lchown(path, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		if got, ok := readNotice(path); ok {
			t.Errorf("of another user: %+v", got)
		}
	}
	for _, target := range []string{"", "x", fmt.Sprint(noticeMagic, " -1/2 1 n 1 x"), fmt.Sprint(noticeMagic, " 3/2 1 n 1 x"), fmt.Sprint(noticeMagic, " 1 1 n 1 x"), fmt.Sprint(noticeMagic, " 1/2 x n 1 x"), fmt.Sprint(noticeMagic, " 1/2 1 n x x")} {
		if n, ok := parseNotice(target); ok {
			t.Errorf("%q is %+v", target, n)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
