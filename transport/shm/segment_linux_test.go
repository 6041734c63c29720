package shm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// useOwnDirectory gives a test its own directory for segments. The test fails if it leaves files there.
func useOwnDirectory(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "goccl-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { // for ranks of other users
		t.Fatal(err)
	}
	old := directory
	directory = dir
	t.Cleanup(func() {
		if leftBehind := files(t); !t.Failed() && len(leftBehind) > 0 {
			t.Errorf("left behind: %q", leftBehind)
		}
		directory = old
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
}

func files(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func startJob(t *testing.T, name string, size int) []*rank {
	t.Helper()
	ranks := make([]*rank, size)
	for i := range ranks {
		ranks[i] = startRank(t, rankSpec{Job: Job{Name: name, Rank: i, Size: size}})
	}
	return ranks
}

// All ranks get the same memory, all zero. They know each other's process ids and notice a death
// immediately. Only the mapping remains.
func TestSegment(t *testing.T) {
	for size := 1; size <= 8; size++ {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			useOwnDirectory(t)
			ranks := startJob(t, "/job", size)
			alive, words, pids := make([]bool, size), make([]uint64, size), make([]int, size)
			for i, r := range ranks {
				r.joined()
				alive[i], words[i], pids[i] = true, uint64(100+i), r.pid()
			}
			if leftBehind := files(t); len(leftBehind) > 0 {
				t.Errorf("%q are there while the job runs", leftBehind)
			}
			for _, r := range ranks {
				ask[bool](r, "store", "stored")
			}
			for i, r := range ranks {
				if got := ask[[]uint64](r, "load", "loaded"); !slices.Equal(got, words) {
					t.Errorf("rank %d reads %v, want %v", i, got, words)
				}
				if got := ask[[]bool](r, "alive", "alive"); !slices.Equal(got, alive) {
					t.Errorf("rank %d sees %v alive", i, got)
				}
				if got := ask[[]int](r, "pids", "pids"); !slices.Equal(got, pids) {
					t.Errorf("rank %d takes the others for %v, want %v", i, got, pids)
				}
			}
			for i, r := range ranks { // each rank in turn is killed or closes its segment
				if i%2 == 0 {
					r.kill()
				} else if more := ask[int](r, "close", "closed"); more != 0 {
					t.Errorf("rank %d has %d files more after close", i, more)
				}
				alive[i] = false
				for j, other := range ranks[i+1:] {
					if got := ask[[]bool](other, "alive", "alive"); !slices.Equal(got, alive) {
						t.Errorf("rank %d sees %v alive, want %v", i+1+j, got, alive)
					}
				}
			}
		})
	}
}

// Ranks in different pid namespaces, as in containers, notice each other's deaths.
func TestPIDNamespaces(t *testing.T) {
	apart := func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	}
	probe := exec.Command("/proc/self/exe", "-test.run=^$")
	apart(probe)
	if err := probe.Run(); err != nil {
		t.Skipf("this user may not have a pid namespace: %v", err)
	}
	useOwnDirectory(t)
	var ranks []*rank
	for i := range 3 {
		ranks = append(ranks, startRank(t, rankSpec{Job: Job{Name: "job", Rank: i, Size: 3}}, apart))
	}
	for _, r := range ranks {
		r.joined()
	}
	if got := ask[[]int](ranks[0], "pids", "pids"); !slices.Equal(got, []int{1, 1, 1}) {
		t.Errorf("the ranks take themselves for %v: they are not in namespaces of their own", got)
	}
	ranks[1].kill()
	for _, i := range []int{0, 2} {
		if got := ask[[]bool](ranks[i], "alive", "alive"); !slices.Equal(got, []bool{true, false, true}) {
			t.Errorf("rank %d sees %v alive", i, got)
		}
	}
	// Leftovers sees them as well.
	lost := startRank(t, rankSpec{Job: Job{Name: "lost", Rank: 0, Size: 2}, Stop: "named"}, apart)
	lost.await("at named")
	removeLeftovers(t, 0)
	lost.kill()
	removeLeftovers(t, 1)
}

// A process that a rank starts does not inherit its locks. Otherwise the rank would count as alive after
// its death.
func TestLocksAreNotInherited(t *testing.T) {
	useOwnDirectory(t)
	var fds []int
	defer stopAt(func(point string) {
		if point != "named" {
			return
		}
		f, err := findFile(filePath("job"))
		if err != nil {
			t.Error(err)
			return
		}
		fds = append(fds, f.fd)
	})()
	s, err := openSegment(context.Background(), Job{Name: "job", Size: 1}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range append(fds, s.fd) {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("flags %#x, %v, want close-on-exec", flags, err)
		}
	}
	if len(fds) != 1 {
		t.Error("the segment was not found by its name")
	}
	if err := errors.Join(s.close(), unix.Close(fds[0])); err != nil {
		t.Error(err)
	}
}

// If a rank is killed while the ranks gather and after it has attached, the other ranks learn which
// rank died. If it has not attached, they time out. A file remains only for ranks that are still to
// come. They recognise it by the secret, and the last of them removes it.
func TestKilledWhileGathering(t *testing.T) {
	for _, c := range []struct {
		victim int
		point  string
		others [3]string // the point that each of the other ranks has reached by then
		known  bool      // the other ranks can learn which rank died
	}{
		{0, "made", [3]string{}, false}, // the others see no file
		{0, "named", [3]string{1: "attached", 2: "attached"}, true},
		{0, "named", [3]string{1: "attached", 2: "found"}, true},
		{0, "named", [3]string{1: "attached"}, true}, // the last rank learns of the death from the file
		{0, "named", [3]string{}, true},              // both ranks learn of it from the file
		{0, "gathered", [3]string{1: "attached", 2: "attached"}, true},
		{0, "unnamed", [3]string{1: "attached", 2: "attached"}, true},
		{1, "found", [3]string{0: "named", 2: "attached"}, false},
		{1, "locked", [3]string{0: "named", 2: "attached"}, false},
		{1, "attached", [3]string{0: "named", 2: "locked"}, true},
	} {
		t.Run(fmt.Sprintf("rank %d %s", c.victim, c.point), func(t *testing.T) {
			useOwnDirectory(t)
			const size = 3
			var victim *rank
			var others []*rank
			var late []rankSpec
			for i := range size {
				spec := rankSpec{Job: Job{Name: "job", Rank: i, Size: size, Secret: "hush"}, Stop: c.others[i]}
				if i == c.victim {
					spec.Stop = c.point
					victim = startRank(t, spec)
					continue
				}
				if c.point == "named" && spec.Stop == "" && i > 0 {
					late = append(late, spec)
					continue
				}
				if c.point == "gathered" || c.point == "unnamed" {
					spec.Stop = "" // otherwise it would stop before that point
				}
				if !c.known {
					spec.Timeout = 200 * time.Millisecond
				}
				others = append(others, startRank(t, spec))
			}
			victim.await("at " + c.point)
			for _, r := range others {
				if point := c.others[r.spec.Job.Rank]; point != "" {
					r.await("at " + point)
				}
			}
			start := time.Now()
			victim.kill()
			for _, r := range others {
				if r.spec.Stop != "" {
					r.goOn()
				}
			}
			for _, r := range others {
				got := r.result()
				switch {
				case c.known && got.Lost != nil && got.Lost.Rank == c.victim && got.Lost.PID == victim.pid():
				case !c.known && got.Late != nil && slices.Equal(got.Late.Missing, []int{c.victim}):
				default:
					t.Errorf("rank %d: %+v, want that rank %d, pid %d if known, is gone", r.spec.Job.Rank, got, c.victim, victim.pid())
				}
			}
			if d := time.Since(start); c.known && d > atOnce {
				t.Errorf("the others learned it after %v", d)
			}
			for _, spec := range late {
				if leftBehind := files(t); len(leftBehind) != 1 {
					t.Errorf("before rank %d comes %q are there, want one file", spec.Job.Rank, leftBehind)
				}
				if got := startRank(t, spec).result(); got.Lost == nil || got.Lost.Rank != c.victim || got.Lost.PID != victim.pid() {
					t.Errorf("rank %d, which comes later: %+v", spec.Job.Rank, got)
				}
			}
		})
	}
}

// A file that stays for a rank that is still to come has no memory beside its header.
func TestOrphanHasNoMemory(t *testing.T) {
	useOwnDirectory(t)
	rank0 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 3}, Bytes: 4 << 20})
	rank0.await("at named")
	rank1 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 3}, Bytes: 4 << 20})
	rank1.await("at attached")
	rank0.kill()
	if got := rank1.result(); got.Lost == nil || got.Lost.Rank != 0 {
		t.Errorf("rank 1: %+v", got)
	}
	var st unix.Stat_t
	if err := unix.Stat(filePath("job"), &st); err != nil || st.Blocks*512 > 1<<16 {
		t.Errorf("it takes %d bytes (error: %v)", st.Blocks*512, err)
	}
	removeLeftovers(t, 1)
}

// A stopped process that made a segment is told as such.
func TestStoppedCreator(t *testing.T) {
	useOwnDirectory(t)
	rank0 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 3}})
	rank0.await("at named")
	if err := rank0.cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(rank0.pid(), &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, %v", status, err)
	}
	if got := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 4}}).result(); !strings.Contains(got.Err, fmt.Sprintf("by pid %d, which is stopped", rank0.pid())) {
		t.Errorf("rank 1: %+v", got)
	}
	rank0.kill()
	removeLeftovers(t, 1)
}

// removeLeftovers finds and removes n segments.
func removeLeftovers(t *testing.T, n int) (found []Leftover) {
	t.Helper()
	found, err := Leftovers()
	if err != nil || len(found) != n {
		t.Fatalf("Leftovers: %v, %v, want %d", found, err, n)
	}
	for _, l := range found {
		if err := l.Remove(); err != nil {
			t.Error(err)
		}
		if err := l.Remove(); err != nil {
			t.Errorf("once more: %v", err)
		}
	}
	return found
}

// When a rank gives up, the other ranks fail immediately. Their errors name that rank, or the rank for
// which it waited. Nothing remains.
func TestGivingUp(t *testing.T) {
	for _, quitter := range []int{0, 1} {
		for _, cancel := range []bool{false, true} {
			t.Run(fmt.Sprintf("rank %d cancelled %v", quitter, cancel), func(t *testing.T) {
				useOwnDirectory(t)
				// Rank 2 never comes.
				point := map[int]string{0: "named", 1: "attached"}[quitter]
				r := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1 - quitter, Size: 3}})
				q := startRank(t, rankSpec{Job: Job{Name: "job", Rank: quitter, Size: 3}, Timeout: time.Millisecond, Cancel: cancel, Stop: point})
				q.await("at " + point)
				r.await("at attached")
				q.goOn()
				got := q.result()
				if cancel && (!got.Cancelled || got.Late != nil) || !cancel && (got.Late == nil || got.Late.By != quitter || !slices.Equal(got.Late.Missing, []int{2})) {
					t.Errorf("who gives up gets %+v", got)
				}
				got = r.result()
				if cancel && (got.AbortedBy == nil || *got.AbortedBy != quitter || !strings.Contains(got.Err, fmt.Sprint("pid ", q.pid()))) ||
					!cancel && (got.Late == nil || got.Late.By != quitter || !slices.Equal(got.Late.Missing, []int{2})) {
					t.Errorf("the other gets %+v, want that rank %d gave up, pid %d", got, quitter, q.pid())
				}
			})
		}
	}
}

// If rank 0 does not come, the error names rank 0 and the file that it should have made.
func TestRankZeroIsMissing(t *testing.T) {
	useOwnDirectory(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := openSegment(ctx, Job{Name: "job", Rank: 1, Size: 2}, 100)
	for _, want := range []string{filepath.Join(directory, filePrefix()+"job"), "waited for rank 0, which did not join", "rank 1 of 2", "ranks in several containers need one " + directory} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// If two processes come as one rank, perhaps because a second job has the same name, all ranks
// immediately return an error with both process ids. The other ranks may belong to either job.
func TestRankTwice(t *testing.T) {
	for twice := range 2 {
		t.Run(fmt.Sprint("rank ", twice), func(t *testing.T) {
			useOwnDirectory(t)
			var ranks []*rank
			for i := range 2 { // of 3
				ranks = append(ranks, startRank(t, rankSpec{Job: Job{Name: "job", Rank: i, Size: 3}}))
				ranks[i].await("at attached")
			}
			second := startRank(t, rankSpec{Job: Job{Name: "job", Rank: twice, Size: 3}})
			if got := second.result(); !strings.Contains(got.Err, fmt.Sprint("pid ", ranks[twice].pid())) || got.Elapsed > atOnce {
				t.Errorf("the second rank %d got %q after %v, want that pid %d is there", twice, got.Err, got.Elapsed, ranks[twice].pid())
			}
			for i, r := range ranks {
				got := r.result()
				if got.AbortedBy == nil || *got.AbortedBy != twice || !strings.Contains(got.Err, fmt.Sprintf("pid %d cannot join", second.pid())) {
					t.Errorf("rank %d got %+v, want that pid %d is one too many", i, got, second.pid())
				}
			}
		})
	}
}

// A second rank 0 that comes after all ranks of the first job belongs to another job.
func TestSecondJobComesLate(t *testing.T) {
	for _, point := range []string{"gathered", "unnamed"} {
		t.Run(point, func(t *testing.T) {
			useOwnDirectory(t)
			rank0 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}, Stop: point})
			rank1 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 2}})
			rank0.await("at " + point)
			if point == "gathered" { // the file has its name and all ranks have attached: the first job fails
				second := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}})
				if got := second.result(); !strings.Contains(got.Err, "two processes say they are rank 0, this one and another (made at ") {
					t.Errorf("the second rank 0: %+v", got)
				}
				rank0.goOn()
				for _, r := range []*rank{rank0, rank1} {
					if got := r.result(); got.AbortedBy == nil || *got.AbortedBy != 0 {
						t.Errorf("rank %d: %+v, want that it fails as the other does", r.spec.Job.Rank, got)
					}
				}
				return
			}
			second := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}})
			second.await("at named")
			rank0.goOn()
			rank0.joined()
			rank1.joined()
			startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 2}}).joined()
			second.joined()
		})
	}
}

// A rank that gives up at the moment when all ranks have come counts as joined: either all ranks join or
// none.
func TestGivingUpWhenAllAreThere(t *testing.T) {
	useOwnDirectory(t)
	rank0 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}, Stop: "unnamed"})
	rank1 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 2}, Stop: "attached", Then: "giving up", Timeout: time.Millisecond})
	rank1.await("at attached")
	rank0.await("at unnamed")
	rank1.goOn()
	rank1.await("at giving up")
	rank0.goOn()
	rank0.joined() // before rank 1 has stored that it gives up
	rank1.goOn()
	rank1.joined()

	rank0 = startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}, Stop: "unnamed"})
	rank1 = startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 2}, Stop: "attached", Timeout: time.Millisecond})
	rank1.await("at attached")
	rank0.await("at unnamed")
	rank1.goOn()
	if got := rank1.result(); got.Late == nil {
		t.Errorf("rank 1: %+v", got)
	}
	rank0.goOn()
	if got := rank0.result(); got.Late == nil || got.Late.By != 1 {
		t.Errorf("rank 0: %+v, want that rank 1 was late", got)
	}
}

// Two jobs of one name with different secrets start at the same time. They never meet, in whatever order
// their ranks come.
func TestTwoJobsWithSecrets(t *testing.T) {
	useOwnDirectory(t)
	const jobs, size = 2, 3
	var ranks [jobs][size]*rank
	start := func(job, rank int, stop string) {
		spec := rankSpec{Job: Job{Name: "job", Rank: rank, Size: size, Secret: fmt.Sprint("of job ", job)}, Stop: stop}
		ranks[job][rank] = startRank(t, spec)
	}
	start(1, 2, "")
	start(0, 0, "named")
	ranks[0][0].await("at named")
	start(1, 1, "") // finds the file of job 0
	start(0, 1, "attached")
	ranks[0][1].await("at attached")
	start(1, 0, "")
	start(0, 2, "")
	for _, r := range ranks[1] {
		r.joined()
	}
	ranks[0][0].goOn()
	ranks[0][1].goOn()
	for _, r := range ranks[0] {
		r.joined()
	}
	for job, ranks := range ranks {
		var want []int
		for _, r := range ranks {
			want = append(want, r.pid())
		}
		for i, r := range ranks {
			if got := ask[[]int](r, "pids", "pids"); !slices.Equal(got, want) {
				t.Errorf("rank %d of job %d is in a group with %v, want %v", i, job, got, want)
			}
		}
	}
}

// There are more jobs than names, each with another secret. The last one waits until one of the others
// has joined.
func TestMoreJobsThanNames(t *testing.T) {
	useOwnDirectory(t)
	all := make(chan struct{}, 1)
	old := atPoint
	t.Cleanup(func() { atPoint = old })
	atPoint = func(point string) {
		if point == "all names taken" {
			select {
			case all <- struct{}{}:
			default:
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job := func(k, rank int) Job { return Job{Name: "job", Rank: rank, Size: 2, Secret: fmt.Sprint("of job ", k)} }
	errs := make(chan error, 2*(maxNames+1))
	open := func(k, rank int) {
		s, err := openSegment(ctx, job(k, rank), 5000)
		if err == nil {
			err = s.close()
		}
		errs <- err
	}
	for k := range maxNames {
		go open(k, 0)
	}
	for len(files(t)) < maxNames {
		time.Sleep(time.Millisecond)
	}
	go open(maxNames, 0)
	select {
	case <-all:
	case err := <-errs:
		t.Fatal(err)
	}
	h, err := newHeader(job(maxNames, 1), 5000)
	if err != nil {
		t.Fatal(err)
	}
	if f, passed, err := findJob(filePath("job"), h); f != nil || passed == nil || err != nil {
		t.Fatalf("rank 1 finds %v, %v, %v, and should look again", f, passed, err)
	}
	for k := range maxNames + 1 {
		go open(k, 1)
	}
	for range 2 * (maxNames + 1) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// Two jobs of one name never meet if the first already runs: its file has no name any more.
func TestTwoJobsRunning(t *testing.T) {
	useOwnDirectory(t)
	jobs := [2][]*rank{}
	for i := range jobs {
		jobs[i] = startJob(t, "job", 2)
		for _, r := range jobs[i] {
			r.joined()
		}
	}
	ask[bool](jobs[0][0], "store", "stored")
	if got := ask[[]uint64](jobs[1][1], "load", "loaded"); !slices.Equal(got, []uint64{0, 0}) {
		t.Errorf("the second job sees %v of the first", got)
	}
	for _, r := range jobs[0] {
		r.kill()
	}
	if got := ask[[]bool](jobs[1][0], "alive", "alive"); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("the second job sees %v alive", got)
	}
}

// A rank waits while another process has locked the rank's seat and not yet written its process id.
// When the other process writes it, the rank returns an error; when the other process dies, the rank
// takes the place.
func TestPlaceTakenByOneThatIsSlow(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies ", dies), func(t *testing.T) {
			useOwnDirectory(t)
			rank0 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 3}})
			rank0.await("at named")
			slow := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 3}, Stop: "locked"})
			slow.await("at locked")
			other := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 3}})
			other.await("at found")
			if dies {
				slow.kill()
				other.await("at attached")
				startRank(t, rankSpec{Job: Job{Name: "job", Rank: 2, Size: 3}}).joined()
				rank0.joined()
				other.joined()
				return
			}
			slow.goOn()
			if got := other.result(); !strings.Contains(got.Err, fmt.Sprintf("two processes say they are rank 1, this one and pid %d, which is running", slow.pid())) {
				t.Errorf("got %q", got.Err)
			}
			for _, r := range []*rank{rank0, slow} { // they learn of the mistake, which ends the job
				if got := r.result(); !strings.Contains(got.Err, "two processes say they are rank 1, ") {
					t.Errorf("rank %d: got %q", r.spec.Job.Rank, got.Err)
				}
			}
			removeLeftovers(t, 0)
		})
	}
}

// No process can replace a rank that joined and died.
func TestRankComesBack(t *testing.T) {
	useOwnDirectory(t)
	rank0 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 3}, Stop: "named"})
	rank0.await("at named")
	rank1 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 3}})
	rank1.await("at attached")
	rank1.kill()
	again := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 3}})
	if got := again.result(); got.Lost == nil || got.Lost.Rank != 1 || got.Lost.PID != rank1.pid() {
		t.Errorf("got %+v, want the loss of rank 1, pid %d", got, rank1.pid())
	}
	rank0.goOn()
	if got := rank0.result(); got.Lost == nil || got.Lost.Rank != 1 || got.Lost.PID != rank1.pid() {
		t.Errorf("rank 0 got %+v", got)
	}
}

// If ranks disagree on the job's size or on the geometry, all of them immediately return an error that
// names the process with which they disagree.
func TestRanksDisagree(t *testing.T) {
	for want, spec := range map[string]rankSpec{
		"it is for 2 ranks, this process is one of 3":          {Job: Job{Name: "job", Rank: 2, Size: 3}},
		"it is for 2 ranks, this process is one of 4":          {Job: Job{Name: "job", Rank: 1, Size: 4}},
		"its arena has 65536 bytes, this process wants 131072": {Job: Job{Name: "job", Rank: 1, Size: 2}, Bytes: 1 << 17},
	} {
		t.Run(want, func(t *testing.T) {
			useOwnDirectory(t)
			rank0 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}})
			rank0.await("at named")
			other := startRank(t, spec)
			got := other.result()
			if !strings.Contains(got.Err, want) || !strings.Contains(got.Err, fmt.Sprintf("by pid %d, which is running", rank0.pid())) || got.Elapsed > atOnce {
				t.Errorf("got %q after %v, want %q and pid %d", got.Err, got.Elapsed, want, rank0.pid())
			}
			got = rank0.result()
			if got.AbortedBy == nil || *got.AbortedBy != spec.Job.Rank || !strings.Contains(got.Err, want) || !strings.Contains(got.Err, fmt.Sprintf("pid %d cannot join", other.pid())) {
				t.Errorf("rank 0 got %+v, want %q of pid %d", got, want, other.pid())
			}
		})
	}
}

// A rank that cannot attach tells the ranks that wait for it, whatever the reason.
func TestRankCannotAttach(t *testing.T) {
	useOwnDirectory(t)
	rank0 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}})
	rank0.await("at named")
	rank1 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 2}, Stop: "locked", Files: 1})
	rank1.await("at locked")
	rank1.goOn() // it can open no more files
	for _, r := range []*rank{rank1, rank0} {
		if got := r.result(); !strings.Contains(got.Err, "too many open files") || got.Elapsed > atOnce {
			t.Errorf("rank %d: %+v", r.spec.Job.Rank, got)
		}
	}
}

// A leftover does not keep the next job of its name from starting. Rank 0 removes it, and the other
// ranks wait for that, in whatever order they come.
func TestStaleFile(t *testing.T) {
	for _, first := range []int{0, 1} {
		t.Run(fmt.Sprintf("rank %d first", first), func(t *testing.T) {
			useOwnDirectory(t)
			dead := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 3}, Stop: "named"})
			dead.await("at named")
			dead.kill()
			all, err := Leftovers()
			if err != nil || len(all) != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			l := all[0]
			want := Leftover{Path: filePath("job"), Job: "job", Ranks: 3, Bytes: l.Bytes, PID: dead.pid(), Made: l.Made}
			if l != want || l.Bytes < 1<<16 || time.Since(l.Made) > time.Minute || time.Since(l.Made) < -time.Second {
				t.Errorf("got %+v, want %+v", l, want)
			}
			// A rank of the dead job that maps it changes its time.
			later := time.Now().Add(time.Minute)
			if err := os.Chtimes(l.Path, later, later); err != nil {
				t.Fatal(err)
			}
			ranks := make([]*rank, 3)
			start := func(i int, stop string) {
				ranks[i] = startRank(t, rankSpec{Job: Job{Name: "job", Rank: i, Size: 3}, Stop: stop})
			}
			if first == 0 {
				start(0, "named")
				ranks[0].await("at named")
				start(1, "")
			} else {
				start(1, "waiting")
				ranks[1].await("at waiting")
				ranks[1].goOn()
				start(0, "named")
				ranks[0].await("at named")
			}
			start(2, "")
			ranks[0].goOn()
			for _, r := range ranks {
				r.joined()
			}
		})
	}
}

// Rank 0 waits for ranks of the dead job that have not noticed the death yet.
func TestStaleFileWithRanks(t *testing.T) {
	useOwnDirectory(t)
	dead := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 3}, Stop: "named"})
	dead.await("at named")
	rank1 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 3}, Stop: "attached"})
	rank1.await("at attached")
	dead.kill()
	late := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}, Stop: "made", Timeout: 50 * time.Millisecond})
	late.await("at made")
	late.goOn()
	if got := late.result(); !strings.Contains(got.Err, "is in use") || got.Late == nil {
		t.Errorf("while rank 1 of the dead job lives: %+v", got)
	}
	rank0 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}, Stop: "made"})
	rank0.await("at made")
	rank0.goOn()
	rank1.goOn()
	if got := rank1.result(); got.Lost == nil || got.Lost.PID != dead.pid() {
		t.Errorf("rank 1 of the dead job: %+v", got)
	}
	rank0.await("at named")
	startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 2}}).joined()
	rank0.joined()
}

// A process that dies loses its locks before it is gone: rank 0 of the next job waits for that.
func TestStaleFileOfOneThatIsDying(t *testing.T) {
	useOwnDirectory(t)
	h := header{name: "job", ranks: 1, arena: 5000, page: os.Getpagesize()}
	file := append(h.encode(), make([]byte, h.total()-headBytes)...)
	start, err := ownStart()
	if err != nil {
		t.Fatal(err)
	}
	binary.NativeEndian.PutUint64(file[seatsOffset:], start)
	binary.NativeEndian.PutUint32(file[seatsOffset+8:], uint32(os.Getpid()))
	binary.NativeEndian.PutUint32(file[seatsOffset+12:], attached)
	if err := os.WriteFile(filePath("job"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = openSegment(ctx, Job{Name: "job", Size: 1}, 5000)
	if _, late := errors.AsType[*transport.TimeoutError](err); !late || !strings.Contains(err.Error(), "which made it, is running") {
		t.Errorf("%v, want a wait for pid %d", err, os.Getpid())
	}
	if err := os.Remove(filePath("job")); err != nil {
		t.Error(err)
	}
}

// If rank 0 does not come again, the errors of the other ranks describe the leftover, which remains.
func TestStaleFileStays(t *testing.T) {
	useOwnDirectory(t)
	dead := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 0, Size: 2}, Stop: "named"})
	dead.await("at named")
	dead.kill()
	rank1 := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 1, Size: 2}, Stop: "waiting", Timeout: time.Millisecond})
	rank1.await("at waiting")
	rank1.goOn()
	got := rank1.result()
	for _, want := range []string{directory + "/" + filePrefix() + "job was left behind", fmt.Sprintf("by pid %d, which is dead", dead.pid()), "waited for rank 0"} {
		if !strings.Contains(got.Err, want) {
			t.Errorf("rank 1 got %q, want %q", got.Err, want)
		}
	}
	removeLeftovers(t, 1)
}

// A process that can open no more files immediately fails with that error, not with a timeout.
func TestNoFileDescriptors(t *testing.T) {
	useOwnDirectory(t)
	var one unix.Rlimit // for the file of rank 0, and nothing else
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &one); err != nil {
		t.Fatal(err)
	}
	lowest, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(lowest)
	one.Cur = uint64(lowest) + 1
	for i := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		restore := limitFiles()
		if i == 2 {
			_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &one) // restore undoes it too
		}
		_, err := openSegment(ctx, Job{Name: "job", Rank: i % 2, Size: 2}, 100)
		restore()
		if !errors.Is(err, unix.EMFILE) || ctx.Err() != nil || strings.Contains(err.Error(), "tmpfs") || !strings.Contains(err.Error(), "(see ulimit -n)") {
			t.Errorf("rank %d: %v", i%2, err)
		}
		cancel()
	}
}
