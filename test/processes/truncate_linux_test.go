package processes

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
)

var cuts = flag.Int("cuts", 6, "number of jobs whose shared memory is truncated")

// If shared memory is truncated while ranks use it, all of them get an error, and none dies.
func TestTruncated(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes atomic operations in C, where a fault ends the program: run this test without -race")
	}
	random := rand.New(rand.NewPCG(*seed, 3))
	for i := range *cuts {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ranks := []int{2, 4, 8}[i%3]
			p := part{Config: yamlFor(ranks), Calls: calls(ranks), Timeout: patience / 2}
			point := p.Calls[random.IntN(len(p.Calls))].point()
			p.Repeat = 1000 // another group would have other memory
			if i%2 == 1 {
				p.Scene, point = "messages", "messages"
			}
			j := start(t, ranks, p, func(rank int, p *part) { p.Talks = rank == 0 })
			j.ranks[0].await(point, 1)
			file := j.ranks[0].segment()
			length := []int64{0, 4096, 20000, 1 << 20}[random.IntN(4)]
			t.Logf("%d ranks, to %d bytes at %s", ranks, length, point)
			time.Sleep(somewhat(random, 4*time.Millisecond))
			if err := os.Truncate(file, length); err != nil {
				t.Fatal(err)
			}
			cut := time.Now()
			for _, r := range j.ranks {
				got := r.sound()
				if got.Err == "" {
					t.Errorf("rank %d at %s: no error", r.number, got.Point)
				}
				if got.AbortedBy != nil && *got.AbortedBy == r.number {
					t.Errorf("rank %d blames itself: %s", r.number, got.Err)
				}
				t.Logf("rank %d at %s after %v: %s", r.number, got.Point, got.at.Sub(cut), got.Err)
			}
			j.leavesNothing()
		})
	}
}

// messages sends messages around the ranks, and reduces beside that, until it fails.
func (p *part) messages(at func(string), _ *result) error {
	g, err := dist.Default()
	if err != nil {
		return err
	}
	next, before := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
	in, out := make([]int32, 5000), make([]int32, 5000)
	for {
		at("messages")
		w, err := dist.AllReduceAsync(in, dist.Sum)
		if err != nil {
			return err
		}
		if _, err := dist.SendRecv(make([]int32, len(out)), before, out, next, 0); err != nil {
			return err
		}
		if err := w.Wait(context.Background()); err != nil {
			return err
		}
	}
}

// segment returns where the shared memory of a rank can be opened.
func (r *rank) segment() string {
	r.job.t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", r.pid()))
	if err != nil {
		r.job.t.Fatal(err)
	}
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, "/dev/shm/") {
			return file
		}
	}
	r.job.t.Fatalf("rank %d has no shared memory open", r.number)
	return ""
}
