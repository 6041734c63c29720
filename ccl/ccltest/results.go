package ccltest

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/calls"
)

// run does the jobs on all ranks of g, and calls judge after each.
func (g *group) run(jobs []*calls.Call, judge func(a attempt) error) error {
	jobs, err := g.supported(jobs)
	if err != nil {
		return err
	}
	return g.each(func(r *rank) error {
		for _, j := range jobs {
			if err := do(r.attempt(j), j, judge); err != nil {
				return err
			}
		}
		return nil
	})
}

// do does one rank's part of a job, and calls judge.
func do(a attempt, j *calls.Call, judge func(a attempt) error) error {
	err := a.call(context.Background())
	if err == nil {
		err = judge(a)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", j, err)
	}
	return nil
}

func results(s *subject, w medium, n int) error {
	return s.with(w, n, probe{}, func(g *group) error { return g.run(g.resultJobs(), attempt.Right) })
}

// resultJobs are calls of all calls.Kinds, types and operations in park, which is fast with more
// ranks than cores, and many of them in the other media. With -short and -race park has all of
// them on few ranks only.
func (g *group) resultJobs() []*calls.Call {
	jobs := g.jobs()
	if g.medium.name == park.name {
		jobs = g.sampleOf(g.thinned(len(jobs), len(jobs)), jobs)
	} else {
		jobs = g.pick(80, jobs)
	}
	if !g.medium.copies {
		jobs = append(jobs, g.longJobs()...)
	}
	return jobs
}

func pieces(s *subject, w medium, n int) error {
	return s.with(w, n, probe{}, func(g *group) error {
		jobs := g.pieceJobs()
		if len(jobs) == 0 {
			return &skipped{why: "long calls are made on two ranks only, without -short and -race"}
		}
		return g.run(jobs, attempt.Right)
	})
}

// pieceJobs are calls whose inputs are longer than a piece.
func (g *group) pieceJobs() []*calls.Call {
	if g.medium.scarce {
		return g.pick(60, g.jobs())
	}
	return g.longJobs()
}

func jitter(s *subject, w medium, n int) error {
	for seed := range 2 {
		err := s.with(w, n, probe{seed: uint64(seed)}, func(g *group) error {
			return g.run(g.pick(30, g.jobs()[seed:]), attempt.Right)
		})
		if err != nil {
			return fmt.Errorf("%w (delays with seed %d)", err, seed)
		}
	}
	return nil
}

func guards(s *subject, w medium, n int) error {
	return s.with(w, n, probe{}, func(g *group) error { return g.run(g.guardJobs(), neatly) })
}

// guardJobs are calls with buffers and blocks at any position.
func (g *group) guardJobs() []*calls.Call {
	jobs := g.pick(60, g.jobs())
	for i, j := range jobs {
		j.Shift = i % 4
		j.Places = calls.Places(i % 4)
	}
	return jobs
}

func inPlace(s *subject, w medium, n int) error {
	if like := (calls.Call{Coll: s.coll}); !like.HasPlacing() {
		return &skipped{why: fmt.Sprintf("%v has no form in place, or no other", s.coll), rest: true}
	}
	return s.with(w, n, probe{}, func(g *group) error { return g.run(g.placedJobs(), neatly) })
}

// placedJobs are the same calls in place on all ranks, on none, and on some.
func (g *group) placedJobs() []*calls.Call {
	var jobs []*calls.Call
	for p := calls.Apart; p <= calls.Flipped; p++ {
		for i, j := range g.pick(25, g.jobs()) {
			j.Placing = p
			j.Places = calls.Places(i % 4)
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// neatly checks the result and that nothing else was written.
func neatly(a attempt) error {
	return cmp.Or(a.Fences(), a.Right())
}

// sameBits does the same jobs in all media, in some of them with another GOMAXPROCS, and
// compares all results with the first.
func sameBits(s *subject, _ medium, n int) error {
	media := []medium{poll, park, arena, smallest}
	media = append(media, jittered(poll, smallest)...)
	var first []*calls.Call
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)

	for i, w := range media {
		runtime.GOMAXPROCS(procs + i%2)

		err := s.with(w, n, probe{seed: uint64(i)}, func(g *group) error {
			for _, p := range []calls.Placing{calls.Apart, calls.Mixed} {
				again := g.floats(p)
				if err := g.run(again, attempt.Note); err != nil {
					return err
				}
				if first == nil {
					first = again
				}

				if err := compare(first, again); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return w.in(err)
		}
	}
	return nil
}

// floats returns calls whose results depend on the order of operations, the same ones in
// all media. With -short and -race each type has one of its two lengths on more than few ranks.
func (g *group) floats(p calls.Placing) []*calls.Call {
	var jobs []*calls.Call
	ops := []ccl.Op{ccl.Sum}
	if g.s.coll.Traits().Reduces {
		ops = append(ops, ccl.Product)
	}

	for i, t := range calls.Kinds {
		if !t.IsFloat {
			continue
		}

		counts := [][]int{{1, 37}, {len(g.ranks), 150}, {12, 37}}[i%3]
		for k, count := range counts {
			if g.s.short && len(g.ranks) > fewRanks && k != (i+len(g.ranks))%2 {
				continue
			}
			for _, op := range ops {
				j := g.newCall(t.DType, op, count, i+k)
				j.Numbers, j.Placing, j.Results = calls.Rough, p, make([][]uint64, len(g.ranks))
				jobs = append(jobs, j)
			}
		}
	}

	return jobs
}

// compare compares each rank's result with a result of the first run: with rank 0's if all ranks
// get the same result, else with the same rank's.
func compare(first, again []*calls.Call) error {
	for i, j := range again {
		for r, got := range j.Results {
			then := r
			switch j.Coll {
			case ccl.CollAllReduce, ccl.CollAllGather, ccl.CollBroadcast:
				then = 0
			}

			want := first[i].Results[then]
			for k := range got {
				if got[k] != want[k] {
					return fmt.Errorf("%v: element %d has the bits %016x on rank %d, and had %016x on rank %d in the first run",
						j, k, got[k], r, want[k], then)
				}
			}
		}
	}
	return nil
}
