package measure

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// bench is one rank's part in the measurement of a case.
type bench[T ccl.Element] struct {
	c        Case
	coll     ccl.Collective
	op       ccl.Op
	comm     *ccl.Communicator
	rank     int
	subjects []*subject[T]
	inputs   [][]T // pattern of each rank's input
	reduced  [][]T // patterns of their reductions, up to each rank's
	shared   bool  // the ranks can have memory in common
	words    *sharedWords
	compute  *computation // nil: the ranks do not compute
	schedule *schedule    // rank 0's

	private       []buffers[T] // of each bucket
	allocated     []buffers[T] // the same by ccl.Alloc, or none
	buffers[T]                 // of the call that is next or in progress
	bucket        int
	calls         int
	consumed      int
	gaveUp        bool         // the last call was not finished, and is not counted
	close         func() error // of what is measured
	wrongElements []int64      // for each subject
	stamps        []int64      // start and end of each counted call of this turn
	ownProcess    bool         // no other rank reports the CPU time of this process
	began         coreTime
}

// buffers are the memory of a call on one rank. send is the input, which every rank has and
// writes, even if only the root's is used; recv is the result of an algorithm, on ranks that
// get one. In place one is part of the other, or the same. The yardsticks copy to room,
// which otherwise contains recv.
type buffers[T ccl.Element] struct {
	send, recv, room []T
}

// newBench returns rank comm.Rank()'s part of a case, whose subjects addSubjects adds. All ranks
// call it at the same time.
func newBench[T ccl.Element](c Case, budget Budget, e elements[T], comm *ccl.Communicator, addSubjects func(*bench[T]) error) (*bench[T], error) {
	b := &bench[T]{c: c, coll: c.collective(), comm: comm, rank: comm.Rank(), ownProcess: comm.Rank() == 0 || dist.IsLaunched(), close: func() error { return nil }}
	var err error
	if b.shared, err = sharesMemory(comm); err != nil {
		return nil, err
	}
	b.op, _ = c.op() // choose has checked it
	together := 1
	if c.Op != "" {
		together = c.Ranks
	}

	for rank := range c.Ranks {
		b.inputs = append(b.inputs, pattern(func(i int) T { return e.value(b.op, rank, i, together) }))
	}
	if c.Op != "" {
		b.reduced = e.reductions(b.op, b.inputs)
	}
	if err := addSubjects(b); err != nil {
		return nil, err
	}

	b.wrongElements = make([]int64, len(b.subjects))
	maxCalls := max(maxTurnCalls, c.buckets())
	b.stamps = make([]int64, 0, 2*maxCalls)
	if b.words, err = newSharedWords(comm, b.shared, len(b.subjects), maxCalls); err != nil {
		return nil, err
	}
	if c.Compute > 0 && !IsWorkload(c.Collective) {
		b.compute = newComputation(c.Compute, c.Jitter, b.rank)
	}

	if b.ownProcess {
		b.began = coreTimes("/proc")
	}
	if b.rank == 0 {
		b.schedule = newSchedule(budget, c, len(b.subjects))
		for i, k := range b.subjects {
			b.schedule.settles[i] = b.computes(k)
		}
	}
	return b, nil
}

// computes reports whether the ranks compute before the calls of a subject. Yardsticks are
// always measured at rest.
func (b *bench[T]) computes(k *subject[T]) bool { return b.compute != nil && k.library == Library }

// newBuffers returns the buffers of each bucket. alloc returns memory of n elements on this rank;
// on no rank is it more than longest.
func (b *bench[T]) newBuffers(alloc func(n, longest int) ([]T, error)) (all []buffers[T], err error) {
	in, result := b.c.Count(), b.c.Total()/b.c.elementSize()
	out := result
	if b.coll.Traits().Rooted && !b.coll.Traits().FromRoot && b.rank != b.c.Root {
		out = 0
	}
	longer, longest := max(in, out), max(in, result)
	for range b.c.buckets() {
		var of buffers[T]
		both, err := alloc(longer, longest)
		if err != nil {
			return nil, err
		}
		if b.c.InPlace { // the shorter one is the rank's part of the longer
			of.send, of.recv = both[b.rank*in%longer:][:in], both[b.rank*out%longer:][:out]
			of.room = make([]T, longer)
		} else {
			if of.send, err = alloc(in, in); err != nil {
				return nil, err
			}
			of.room, of.recv = both, both[:out]
		}
		all = append(all, of)
	}
	return all, nil
}

// work runs turns until rank 0 announces the last one, or its ctx ends.
func (b *bench[T]) work(ctx context.Context) error {
	for {
		if b.rank == 0 {
			b.words.announce(b.schedule.next(ctx))
		}
		if err := b.words.publish(); err != nil {
			return err
		}
		t := b.words.announced()
		if t.steps == 0 {
			return b.end()
		}

		var start int64
		var used time.Duration
		for i := range t.steps {
			if i <= t.skip {
				b.stamps = b.stamps[:0]
			}
			if i == t.skip {
				start, used = nanotime(), cpuTime()
			}

			if err := b.step(t.subject); err != nil {
				return err
			}
		}
		words, wall := b.words.ofRank(b.rank), nanotime()-start
		words.setCPU(0)
		if b.ownProcess {
			words.setCPU(cpuTime() - used)
		}

		copy(words.stamps(), b.stamps)
		if err := b.words.collect(); err != nil {
			return err
		}
		if b.rank == 0 && t.skip < t.steps {
			b.record(t.subject, time.Duration(wall))
		}
	}
}

// end leaves the sums of this rank's measurements on the board, for rank 0.
func (b *bench[T]) end() error {
	words := b.words.ofRank(b.rank)
	copy(words.wrongElements(), b.wrongElements)
	words.setCPU(0)
	if b.ownProcess {
		words.setCPU(time.Duration(coreTimes("/proc").here - b.began.here)) // in ticks
	}
	return b.words.collect()
}

// otherLoad returns how many of the ranks' cores other programs have used, on rank 0 after end.
func (b *bench[T]) otherLoad() float64 {
	now, cores := coreTimes("/proc"), usableCores()
	now.here = b.began.here
	for rank := range b.c.Ranks {
		now.here += float64(b.words.ofRank(rank).cpu())
	}
	if dist.IsLaunched() { // each process may have cores of its own
		cores = now.cores
	}
	return rounded(now.otherLoad(b.began, min(b.c.Ranks, cores)))
}

// step makes the calls of a subject that follow each other, one in each bucket, including
// the work around them.
func (b *bench[T]) step(subject int) error {
	k := b.subjects[subject]
	computes := b.computes(k)
	if computes {
		b.compute.run(1)
	}
	first := b.calls
	b.calls += len(k.buckets)
	for i := range k.buckets { // after computing, which writes them last
		fill(k.buckets[i].send, b.inputs[b.rank], (first+i)%period)
	}
	if k.show != nil {
		k.show(first)
	}
	if !computes {
		if err := errors.Join(b.words.awaitAll(), b.words.awaitAll()); err != nil {
			return err
		}
	}

	for i := range k.buckets {
		if err := b.call(k, i); err != nil {
			return err
		}
	}
	if !computes {
		if err := b.words.awaitAll(); err != nil {
			return err
		}
	}

	for i := range k.buckets {
		if k.countWrong != nil {
			b.buffers = k.buckets[i]
			b.wrongElements[subject] += int64(k.countWrong((first + i) % period))
		}
	}
	return nil
}

// call makes and times one call.
func (b *bench[T]) call(k *subject[T], bucket int) error {
	b.bucket, b.buffers, b.gaveUp = bucket, k.buckets[bucket], false
	start := nanotime()
	err := k.run()
	if b.c.Consume && k.result != nil {
		b.consumed += read(k.result())
	}
	end := nanotime()
	if b.gaveUp {
		end = unfinished
	}
	b.stamps = append(b.stamps, start, end)
	return err
}

// unfinished stands for the end of a call that does not count.
const unfinished = -1

// record adds the turn that has just ended to the schedule's measurements, on rank 0.
func (b *bench[T]) record(subject int, wall time.Duration) {
	k := b.subjects[subject]
	var used time.Duration
	for rank := range b.c.Ranks {
		used += b.words.ofRank(rank).cpu()
	}
	b.schedule.recordCPU(subject, used, wall)
	for i := 0; i < len(b.stamps); i += 2 {
		var arrived, ended, whole int64 // the last arrival, the last end, the longest call
		valid := true
		for rank := range min(k.ranks, b.c.Ranks) {
			stamps := b.words.ofRank(rank).stamps()
			start, end := stamps[i], stamps[i+1]
			valid = valid && end != unfinished
			arrived, ended, whole = max(arrived, start), max(ended, end), max(whole, end-start)
		}
		if valid {
			b.schedule.record(subject, time.Duration(ended-arrived)/k.parts, time.Duration(whole)/k.parts)
		}
	}
}

// rows returns the rows of the case, on rank 0: the yardsticks, then the entries in the order
// in which they were asked for.
func (b *bench[T]) rows(entries []chosen) (rows []Row) {
	i := 0
	measured := func(row Row) Row {
		b.schedule.times(i, &row)
		for rank := range b.c.Ranks {
			row.Errors += int(b.words.ofRank(rank).wrongElements()[i])
		}
		i++
		return row
	}

	for b.subjects[i].library == Yardstick {
		rows = append(rows, measured(Row{Library: Yardstick, Entry: b.subjects[i].name}))
	}
	for _, e := range entries {
		row := e.row()
		if e.refused == "" {
			row = measured(row)
		}
		rows = append(rows, row)
	}
	return b.c.compared(rows)
}
