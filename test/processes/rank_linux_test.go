package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/stress"
)

// partVariable holds the part that the test binary plays as a rank.
const partVariable = "TEST_GOCCL_PART"

// A part is what a rank does: init, calls, destroy, again and again.
type part struct {
	Config  string // ccl.yaml
	Rounds  int    // 0: for ever
	Calls   []call // of a round
	Repeat  int    // how many more times Calls are made in the same round
	Timeout time.Duration
	Talks   bool   // prints the points that it reaches
	Late    bool   // waits for its standard input before the first call
	Flight  string // directory for flight recorders
	Region  int    // bytes of a region that all ranks populate and read

	Scene  string // what ranks do before calls, one of scenes
	Seed   uint64 // of its choices
	Victim int    // the rank that dies in it
	Count  int    // how much of it
}

// scenes are what ranks do between init and destroy, beside calls.
var scenes map[string]func(p *part, at func(string), r *result) error

func init() { // they know part
	scenes = map[string]func(p *part, at func(string), r *result) error{
		"":            func(*part, func(string), *result) error { return nil },
		"program":     (*part).program,
		"layouts":     (*part).layouts,
		"many groups": (*part).manyGroups,
		"await":       (*part).await,
		"mixture":     (*part).mixture,
		"factors":     (*part).factors,
		"refusal":     (*part).refusal,
		"messages":    (*part).messages,
		"ring":        (*part).ring,
		"room":        (*part).room,
		"any source":  (*part).anySource,
	}
	for name := range works {
		scenes[name] = (*part).work
	}
}

type call struct {
	Algorithm string
	Elements  int
}

// A result is how a rank ends.
type result struct {
	Err                string // of the first call that failed, "" if none did
	Point              string // where that was
	Lost               *dist.PeerLostError
	Late               *dist.TimeoutError
	AbortedBy          *int
	Again              string        // the error of the next call
	Files, Goroutines  int           // more than before, after the end of the group
	CPU                time.Duration // user and system time of the call that failed, or of the last
	Elapsed            time.Duration // of the same
	Wrong              string        // what must never be
	Rounds, TotalCalls int
	LostAt             time.Time // when the error came
	LostRank           int       // of all ranks, which Lost counts as its group does
	Text               string    // the result of a scene
	Grown              belongings
	Account            *stress.Account
	Shared, Resident   int // bytes by which the region has grown this rank's part of shared memory, and what it sees of it
}

func TestMain(m *testing.M) {
	if text := os.Getenv(failingVariable); text != "" {
		playFailing(text)
		return
	}
	if text := os.Getenv(partVariable); text != "" {
		var p part
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			panic(err)
		}
		b, err := json.Marshal(p.play())
		if err != nil {
			panic(err)
		}
		fmt.Printf("result %s\n", b)
		return
	}
	os.Exit(m.Run())
}

func (p *part) play() (r result) {
	cfg, err := config.Parse("ccl.yaml", []byte(p.Config))
	if err != nil {
		panic(err)
	}
	longest := 0
	for _, c := range p.Calls {
		longest = max(longest, c.Elements)
	}
	buffer := make([]float32, longest)
	_, _ = os.ReadFile("/proc/self/stat") // the runtime's own files are open from now on
	files, goroutines := openFiles(), runtime.NumGoroutine()
	at := func(point string) {
		r.Point = point
		if p.Talks {
			fmt.Println("at", point)
		}
	}

	if p.Scene == departing {
		err = p.departures(cfg, &r)
	} else {
		err = p.rounds(cfg, buffer, at, &r)
	}
	_ = dist.DestroyProcessGroup() // it may be destroyed already
	if err != nil {
		r.Err = err.Error()
		errors.As(err, &r.Lost)
		errors.As(err, &r.Late)
		if aborted := (*dist.AbortedError)(nil); errors.As(err, &aborted) {
			r.AbortedBy = &aborted.By
		}
	}
	// What has ended may be on its way out.
	for limit := time.Now().Add(time.Second); ; runtime.Gosched() {
		r.Files, r.Goroutines = openFiles()-files, runtime.NumGoroutine()-goroutines
		if r.Files <= 0 && r.Goroutines <= 0 || time.Now().After(limit) {
			return r
		}
	}
}

func (p *part) rounds(cfg *config.Config, buffer []float32, at func(string), r *result) error {
	size, _ := strconv.Atoi(os.Getenv("GOCCL_SHM_SIZE"))
	rank, _ := strconv.Atoi(os.Getenv("GOCCL_SHM_RANK"))
	for ; p.Rounds == 0 || r.Rounds < p.Rounds; r.Rounds++ {
		at("init")
		if err := r.measure(func() error {
			return dist.InitProcessGroup("ccl", dist.WithConfig(cfg), dist.WithTimeout(p.Timeout), dist.WithFlight(p.Flight))
		}); err != nil {
			return err
		}
		at("joined")
		if p.Late && r.TotalCalls == 0 {
			if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
				panic(err)
			}
		}
		if p.Region > 0 {
			if err := r.share(p.Region); err != nil {
				return err
			}
		}
		if err := scenes[p.Scene](p, at, r); err != nil {
			return err
		}
		for i := range len(p.Calls) * (1 + p.Repeat) {
			c := p.Calls[i%len(p.Calls)]
			v := buffer[:c.Elements]
			for i := range v {
				v[i] = float32(rank + i%5)
			}
			at(c.point())
			err := r.measure(func() error {
				return dist.AllReduce(v, dist.Sum, dist.WithCallAlgorithm(c.Algorithm))
			})
			if err != nil {
				if again := dist.Barrier(); again != nil {
					r.Again = again.Error()
				}
				return err
			}
			for i := range v {
				if want := float32(size*(size-1)/2 + size*(i%5)); v[i] != want {
					r.Wrong = fmt.Sprintf("%s: element %d is %v, want %v", c.point(), i, v[i], want)
					return nil
				}
			}
			r.TotalCalls++
		}
		at("destroy")
		if err := dist.DestroyProcessGroup(); err != nil {
			return err
		}
	}
	at("end")
	return nil
}

// point names a call.
func (c call) point() string { return fmt.Sprintf("%s/%d", c.Algorithm, 4*c.Elements) }

// measure runs f and notes what it took.
func (r *result) measure(f func() error) error {
	start, before := time.Now(), cpu()
	err := f()
	r.Elapsed, r.CPU = time.Since(start), cpu()-before
	return err
}

// cpu returns the user and system time of this process.
func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// openFiles returns how many files this process has open.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(entries)
}
