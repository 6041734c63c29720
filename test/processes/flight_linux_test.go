package processes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport/shm"
)

// If a rank is killed at any moment, every survivor's flight recorder shows what it did last.
func TestFlightOfTheKilled(t *testing.T) {
	defer func(n int) { *perNode = n }(*perNode)
	*perNode = 4 // a recorder shows the ranks of its node
	groups := 1
	if *byTCP {
		groups = 3 // two of the node
	}
	random := rand.New(rand.NewPCG(*seed, 1))
	for i := range max(*kills/2, 1) {
		ranks := []int{2, 4}[i%2]
		victim := random.IntN(ranks)
		p := part{Config: yamlFor(ranks), Calls: calls(ranks), Repeat: 1000, Timeout: patience / 2, Flight: t.TempDir()}
		point := p.Calls[random.IntN(len(p.Calls))].point()
		t.Run(fmt.Sprintf("%d/rank %d of %d at %s", i, victim, ranks, point), func(t *testing.T) {
			j := start(t, ranks, p, func(rank int, p *part) { p.Talks = rank == victim })
			v := j.ranks[victim]
			v.await(point, 2+random.IntN(2)) // the second time it has made calls
			time.Sleep(somewhat(random, 8*time.Millisecond))
			v.signal(syscall.SIGKILL)
			told := make([]string, ranks)
			j.others(victim, func(r *rank) { told[r.number] = r.sound().Err })
			_ = v.report()
			documents, _, err := flight.Load(p.Flight)
			if err != nil || len(documents) != ranks-1 {
				t.Fatalf("%d documents: %v", len(documents), err)
			}
			for _, d := range documents {
				dead, last := d.Ranks[victim], ownLast(t, d)
				if len(d.Ranks) != ranks || dead.PID != v.pid() || len(dead.Groups) != groups {
					t.Fatalf("%s has %d ranks, and rank %d has pid %d and %d groups", d.Writer, len(d.Ranks), victim, dead.PID, len(dead.Groups))
				}
				checkDead(t, p, dead.Groups[0].Calls, last)
				var writer int
				if _, err := fmt.Sscanf(d.Writer, "rank %d", &writer); err != nil {
					t.Fatal(err)
				}
				checkTold(t, told[writer], victim, dead.Groups[0].Calls, last.Number)
			}
			j.leavesNothing()
		})
	}
}

// checkTold checks that an error, of a survivor's call, says what the killed rank did last. If it died in the same
// call, the error says so.
func checkTold(t *testing.T, err string, victim int, calls []flight.Call, call uint64) {
	t.Helper()
	last := calls[len(calls)-1]
	what, want := ", "+last.Collective, fmt.Sprintf("; rank %d last made call %d", victim, last.Number)
	if last.State == flight.StateStarting { // the rest of its record is not known
		what = ""
	}
	if last.Number == call {
		want = fmt.Sprintf("; rank %d came to this call", victim)
	}
	if !strings.Contains(err, want+what) {
		t.Errorf("a survivor's error, in call %d, has no %q: %s", call, want+what, err)
	}
}

// ownLast returns the last call of the rank that has written the document, which has failed.
func ownLast(t *testing.T, d *flight.Document) flight.Call {
	t.Helper()
	i := slices.IndexFunc(d.Ranks, func(r flight.Rank) bool { return fmt.Sprint("rank ", r.Rank) == d.Writer })
	calls := d.Ranks[i].Groups[0].Calls
	last := calls[len(calls)-1]
	if last.State != flight.StateFailed {
		t.Errorf("%s: %v", d.Writer, last)
	}
	return last
}

// checkDead checks the calls of a rank that was killed while another rank made its last call.
func checkDead(t *testing.T, p part, calls []flight.Call, others flight.Call) {
	t.Helper()
	last := calls[len(calls)-1]
	if last.Number+1 < others.Number || last.Number > others.Number+1 {
		t.Errorf("the dead rank's last is %v, another's %v", last, others)
	}
	for i, c := range calls {
		switch made := p.Calls[(c.Number-1)%uint64(len(p.Calls))]; {
		case i > 0 && c.Number != calls[i-1].Number+1:
			t.Errorf("after %v comes %v", calls[i-1], c)
		case c.State == flight.StateStarting && i == len(calls)-1:
		case c.State != flight.StateDone && i < len(calls)-1, c.State == flight.StateFailed,
			c.Collective != "all_reduce", c.Type != "float32", c.Op != "sum", c.Count != made.Elements, c.Algorithm != made.Algorithm:
			t.Errorf("the dead rank has made %+v, and the record is %v", made, c)
		}
	}
}

// A running job is found by its name, and its memory read without its help.
func TestFlightOfARunningJob(t *testing.T) {
	begun := time.Now()
	p := part{Config: yamlFor(2), Calls: calls(2), Repeat: 1000, Timeout: patience / 2}
	j := start(t, 2, p, func(_ int, p *part) { p.Talks = true })
	for _, r := range j.ranks {
		r.await(p.Calls[1].point(), 1)
	}
	j.ranks[1].signal(syscall.SIGSTOP)
	memory, err := shm.OpenFlight(j.name)
	if err != nil {
		t.Fatal(err)
	}
	running, err := shm.Jobs()
	i := slices.IndexFunc(running, func(r shm.RunningJob) bool { return r.Name == j.name+"-1" })
	if err != nil || i < 0 {
		t.Fatalf("the running jobs are %+v, %v", running, err)
	}
	pids := []int{j.ranks[0].pid(), j.ranks[1].pid()}
	if r := running[i]; r.Ranks != 2 || !slices.Equal(r.PIDs, pids) || r.Made.Before(begun) || r.Made.After(time.Now()) {
		t.Errorf("the job, of the processes %d since %v, is %+v", pids, begun, r)
	}
	for _, r := range j.ranks {
		r.signal(syscall.SIGKILL)
		_ = r.report()
	}
	ranks, err := memory.Ranks() // it is there while this process has it open
	if err != nil || len(ranks) != 2 || memory.Size() != 2 {
		t.Fatalf("%d ranks of %d: %v", len(ranks), memory.Size(), err)
	}
	for i, r := range ranks {
		if calls := r.Groups[0].Calls; r.PID != j.ranks[i].pid() || len(calls) < 1 || calls[0].Number != 1 {
			t.Errorf("rank %d: %+v", i, r)
		}
	}
	if err := memory.Close(); err != nil {
		t.Error(err)
	}
	if _, err := shm.OpenFlight(j.name); err == nil {
		t.Error("a job was found that has ended")
	}
	j.leavesNothing()
}
