package measure

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/ccl"
)

// bench is one case during its measurement.
type bench[T ccl.Element] struct {
	c          Case
	op         ccl.Op
	schedule   *schedule
	contenders []*contender[T]
	ranks      []*rank[T]
	inputs     [][]T // pattern of each rank's input
	reduced    [][]T // patterns of their reductions, up to each rank's
	// turn is the next action of all ranks. Rank 0 writes it before a barrier, and the
	// others read it right after.
	turn turn
	word [2]word // passed by core to core
}

// rank is the memory of one rank, and a count of its calls.
type rank[T ccl.Element] struct {
	id   int
	comm *ccl.Communicator
	// send is the input, which every rank has and writes, even if only the root's is used;
	// recv is the result of an algorithm, on ranks that get one. In place one is part of the
	// other, or the same. The yardsticks copy to room, which otherwise contains recv.
	send, recv, room []T
	calls            int
	elapsed          time.Duration // of the last call
	gaveUp           bool          // it was not finished, and is not counted
	consumed         int
	wrong            []int // elements, for each contender
	_                [128]byte
}

// newBench returns nil if all entries are rejected.
func newBench[T ccl.Element](c Case, budget Budget, e elements[T], entries []chosen) *bench[T] {
	b := &bench[T]{c: c, ranks: make([]*rank[T], c.Ranks)}
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
	b.addYardsticks()
	yardsticks := len(b.contenders)
	for _, entry := range entries {
		if entry.refused == "" {
			b.addEntry(entry)
		}
	}
	if len(b.contenders) == yardsticks {
		return nil
	}
	b.schedule = newSchedule(budget, len(b.contenders))
	return b
}

// background is the context of all calls, as in a program without its own.
var background = context.Background()

// work runs turns until rank 0 sends the last one, or ctx ends.
func (b *bench[T]) work(ctx context.Context, comm *ccl.Communicator) error {
	r := b.newRank(comm)
	b.ranks[r.id] = r
	for {
		if r.id == 0 {
			b.turn = b.schedule.next(ctx)
		}
		if err := comm.Barrier(background); err != nil {
			return err
		}
		t := b.turn
		if t.calls == 0 {
			return nil
		}
		for range t.calls {
			if err := b.call(r, t); err != nil {
				return err
			}
		}
	}
}

func (b *bench[T]) newRank(comm *ccl.Communicator) *rank[T] {
	r := &rank[T]{id: comm.Rank(), comm: comm, wrong: make([]int, len(b.contenders))}
	in, out := b.c.Count(), b.c.Total()/b.c.elementSize()
	if coll := b.c.collective(); r.id != b.c.Root && (coll == ccl.CollReduce || coll == ccl.CollGather) {
		out = 0
	}
	longer := max(in, out)
	r.room = make([]T, longer)
	if b.c.InPlace { // the shorter one is the rank's part of the longer
		both := make([]T, longer)
		r.send, r.recv = both[r.id*in%longer:][:in], both[r.id*out%longer:][:out]
	} else {
		r.send, r.recv = make([]T, in), r.room[:out]
	}
	return r
}

// call makes one call of a contender, including the work around it.
func (b *bench[T]) call(r *rank[T], t turn) error {
	k := b.contenders[t.contender]
	phase := r.calls % period
	r.calls++
	r.gaveUp = false
	fill(r.send, b.inputs[r.id], phase)
	err := errors.Join(r.comm.Barrier(background), r.comm.Barrier(background))
	if err != nil {
		return err
	}

	start := time.Now()
	err = k.run(r)
	if b.c.Consume && k.result != nil {
		r.consumed += read(k.result(r))
	}
	r.elapsed = time.Since(start)

	if err = errors.Join(err, r.comm.Barrier(background)); err != nil {
		return err
	}
	if r.id == 0 && t.counts && !r.gaveUp {
		b.schedule.record(t.contender, b.slowest()/k.parts)
	}
	if k.wrong != nil {
		r.wrong[t.contender] += k.wrong(r, phase)
	}
	return nil
}

func (b *bench[T]) slowest() (d time.Duration) {
	for _, r := range b.ranks {
		d = max(d, r.elapsed)
	}
	return d
}

// rows returns the rows of the case: the yardsticks, then the entries in the order
// in which they were asked for.
func (b *bench[T]) rows(entries []chosen) (rows []Row) {
	i := 0
	measured := func(row Row) Row {
		row.Calls, row.P50, row.P99, row.Min = b.schedule.times(i)
		for _, r := range b.ranks {
			row.Errors += r.wrong[i]
		}
		i++
		return row
	}
	for b.contenders[i].library == Yardstick {
		rows = append(rows, measured(Row{Library: Yardstick, Entry: b.contenders[i].name}))
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
