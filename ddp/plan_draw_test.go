package ddp_test

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/ccl"
)

type planDrawing struct {
	*rand.Rand
	plan    *Plan
	t       *Training
	mode    int     // 0: FindUnused, 1: StaticGraph, 2: all parameters are ready
	promise [][]int // with StaticGraph: what each rank has ready in every step
	steps   int
}

// NewPlan draws the plan of a seed.
func NewPlan(seed uint64, ranks int) *Plan {
	d := &planDrawing{Rand: rand.New(rand.NewPCG(seed, uint64(ranks))), plan: &Plan{Seed: seed, Ranks: ranks}}
	d.plan.Trainings = make([]*Training, 1+d.IntN(3))
	for number := range d.plan.Trainings {
		d.training(number)
	}
	return d.plan
}

func (d *planDrawing) chance(percent int) bool { return d.IntN(100) < percent }

func (d *planDrawing) subset() []int { return d.Perm(len(d.t.Lengths))[:d.IntN(1+len(d.t.Lengths))] }

func (d *planDrawing) training(number int) {
	t := &Training{
		Number: number, Views: d.chance(50), Hooked: d.chance(30), Shares: d.chance(30),
		First: 1 + d.IntN(200), Rest: 1 + d.IntN(400), Lengths: make([]int, 1+d.IntN(5)),
	}
	d.plan.Trainings[number], d.t = t, t
	d.mode, d.steps, d.promise = d.IntN(3), 0, make([][]int, d.plan.Ranks)
	if d.chance(30) {
		t.Shards = d.plan.Ranks + max(0, d.IntN(10)-2)
		d.mode, t.Hooked, t.Shares = 2, false, false
	}
	t.Unused, t.Static = d.mode == 0, d.mode == 1
	for rank := range d.promise {
		d.promise[rank] = d.subset()
	}

	types, isMixed := []ccl.DType{ccl.Float32, ccl.Float64, ccl.Float16, ccl.BFloat16}, d.chance(60)
	for i := range t.Lengths {
		t.Lengths[i] = d.IntN(30)
		if t.Types = append(t.Types, types[d.IntN(len(types))]); !isMixed {
			t.Types[i] = t.Types[0]
		}
	}
	if d.chance(20) { // 256 KiB: reduced in place
		t.Lengths[0] = 1<<16 + d.IntN(100)
	}
	for range 1 + d.IntN(3) {
		d.phase()
	}
	if d.plan.Ranks > 1 && d.chance(70) {
		d.fault(t.Phases[len(t.Phases)-1])
	}
}

func (d *planDrawing) phase() {
	ph := &Phase{Join: d.chance(40) && d.t.Shards == 0, Counts: make([]int, d.plan.Ranks), Steps: make([]*Step, 2+d.IntN(4))}
	least := d.mode % 2 // with StaticGraph all ranks make the first step
	if !ph.Join {
		least = len(ph.Steps)
	}
	for rank := range ph.Counts {
		ph.Counts[rank] = least + d.IntN(len(ph.Steps)+1-least)
	}

	ph.Counts[d.IntN(d.plan.Ranks)] = len(ph.Steps)
	for i := range ph.Steps {
		s := &Step{Number: 1 + d.steps, Turns: make([]Turn, d.plan.Ranks)}
		for rank := range s.Turns {
			if s.Turns[rank] = d.turn(rank); d.chance(8) {
				d.slip(rank, &s.Turns[rank])
			}
		}
		ph.Steps[i] = s
		d.steps++
	}
	d.t.Phases = append(d.t.Phases, ph)
}

// turn draws a turn without mistakes.
func (d *planDrawing) turn(rank int) (t Turn) {
	if d.t.Shards == 0 {
		t.NoSync = make([][]int, max(0, d.IntN(5)-2))
	}
	for _, i := range [][]int{d.subset(), d.promise[rank], d.Perm(len(d.t.Lengths))}[d.mode] {
		if len(t.NoSync) == 0 || d.chance(80) {
			t.Last = append(t.Last, i)
		} else {
			t.NoSync[0] = append(t.NoSync[0], i)
		}

		for b := range t.NoSync {
			for d.chance(40) {
				t.NoSync[b] = append(t.NoSync[b], i)
			}
		}
	}
	d.Shuffle(len(t.Last), func(i, j int) { t.Last[i], t.Last[j] = t.Last[j], t.Last[i] })
	return t
}

// slip draws a mistake in the turn of a rank, if it is possible there.
func (d *planDrawing) slip(rank int, t *Turn) {
	kind := []string{SlipTwice, SlipRange, SlipOutside, SlipNoSync, SlipNoLoop, SlipLoop}[d.IntN(6)]
	i, begun := d.IntN(len(d.t.Lengths)), len(t.Last) > 0
	switch {
	case kind == SlipTwice && begun, kind == SlipRange, kind == SlipNoSync && begun, (kind == SlipNoLoop || kind == SlipLoop) && d.t.Shards > 0:
		t.Slip = kind
	case kind == SlipOutside && d.t.Static && d.steps > 0 && !slices.Contains(d.promise[rank], i):
		if t.Slip = kind; !d.t.Views && d.chance(50) {
			t.Last = append(t.Last, i)
		} else {
			t.NoSync = append(t.NoSync, []int{i})
		}
	}
}

// fault draws how a phase ends in a step before its last.
func (d *planDrawing) fault(ph *Phase) {
	index := d.IntN(len(ph.Steps) - 1)
	s := ph.Steps[index]
	ranks := map[bool][]int{} // by whether they make the step
	for _, rank := range d.Perm(d.plan.Ranks) {
		s.Turns[rank] = d.turn(rank)
		ranks[ph.Counts[rank] > index] = append(ranks[ph.Counts[rank] > index], rank)
	}
	train, done := ranks[true], ranks[false]
	batch, last := s.Turns[train[0]].Last, d.t.Number == len(d.plan.Trainings)-1
	f := &Fault{Rank: train[0], Holder: -1, Parameter: d.IntN(len(d.t.Lengths)), First: d.IntN(1 + len(batch))}
	hosted := 1
	if d.t.Shards > 0 {
		low, high := ccl.BlockRange(d.t.Shards, f.Rank, d.plan.Ranks)
		hosted = high - low
		f.Shard = d.IntN(hosted)
	}
	need := d.Perm(len(d.t.Lengths)) // ready on a rank that has done all of its step
	if d.t.Static && s.Number > 1 {
		need = d.promise[f.Rank]
	}
	f.Loose = d.t.Shards == 0 && !slices.ContainsFunc(need, func(i int) bool { return !slices.Contains(batch[:f.First], i) })
	possible := map[string]bool{
		FaultUnready: len(need) > 0 && !d.t.Unused && (!d.t.Static || s.Number > 1), FaultHook: d.t.Hooked, FaultContext: len(train) > 1,
		FaultCloses: f.First > 0, FaultLeaves: true, FaultFails: last && !ph.Join, FaultReturns: last && !ph.Join,
		FaultStops: ph.Join, FaultNested: ph.Join, FaultNoWait: ph.Join && f.First > 0, FaultAbandons: len(done) > 0, FaultBreaks: hosted > 1,
	}

	kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(possible)), func(kind string) bool { return !possible[kind] })
	switch f.Kind = kinds[d.IntN(len(kinds))]; f.Kind {
	case FaultBreaks:
		f.Shard = d.IntN(hosted - 1)
	case FaultUnready:
		f.Parameter = need[0]
	case FaultContext:
		f.Holder = train[1]
	case FaultAbandons:
		f.Rank, f.Holder = done[0], train[0]
	}
	s.Fault = f
}
