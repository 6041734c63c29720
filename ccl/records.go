package ccl

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/goccl/goccl/ccl/internal/p2p"
	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// timedBytes is the length in bytes of the shortest input or result for which a call's times are
// recorded. A call of that length takes at least ten microseconds, and a clock reading 0.02.
const timedBytes = 64 << 10

// WithFlight makes the communicator, and the groups made of it, write the flight recorder to a file
// in a directory when a call fails: the last calls and messages of this rank and of all ranks whose
// memory it can read.
//
// The directory is made if it does not exist. `goccl inspect` shows the files. An error of writing
// is logged with the logger of WithLogger.
func WithFlight(dir string) Option { return Option{flight: dir} }

// WithCallTimes makes the communicator, and the groups made of it, record the times of all calls
// and messages. Without it messages and synchronous calls below 64 KiB have none, because reading
// the clock takes longer than recording a call.
func WithCallTimes() Option { return Option{times: true} }

// WithMetrics makes the communicator, and the groups made of it, count their calls by collective:
// how many they were, how many of them failed, their bytes, their time, and the part of it in which
// this rank waited for others. Messages are counted likewise, without times.
//
// The counters lie beside the flight recorder, where other programs read them while the rank runs
// and after it has died. A call takes some tenths of a microsecond longer. A logger that is enabled
// for info counts as well.
func WithMetrics() Option { return Option{metrics: true} }

// Indices of recorder.messages.
const (
	isends = iota
	irecvs
)

// recorder is the flight recorder of one rank. The communicator of the first group makes it; the
// groups made of that group share it. A group of one rank has none, since its calls wait for no
// rank, unless it counts them.
type recorder struct {
	memory   transport.Records
	book     *flight.Book
	rank     int // in the first group
	size     int
	dir      string // for files, or ""
	times    bool   // of all calls
	metrics  bool   // calls are counted
	users    interleave.Int64
	messages [2][Bool + 1]flight.What // sends and receives, by type
	counted  [len(collectives)]flight.What
}

// records are the flight records of one communicator.
type records struct {
	*group
	journal   *journal
	guard     transport.FaultGuard // nil: shared memory cannot vanish
	recorder  *recorder            // nil: a group of one rank
	lane      flight.Lane
	timedFrom int // length in bytes from which records have times
}

// startRecorder makes the recorder of a first group.
func (l *records) startRecorder(o *Option) error {
	r := &recorder{rank: l.rank, size: l.size, dir: o.flight, times: o.times || o.metrics, metrics: o.metrics}
	r.users.Store(1)
	if shared, ok := l.ep.(transport.Recorder); ok {
		r.memory, _ = shared.Records() // without it this process alone sees the records
	}
	if r.memory == nil {
		r.memory = aloneRecords{flight.NewHeap(1), l.rank}
	}

	l.recorder = r
	return l.vanishing(func() {
		r.book = flight.NewBook(r.memory.Part(l.rank), l.rank, os.Getpid())
		// Later names may find the table full: each factor of PremulSum has one.
		for coll := CollBarrier; int(coll) < len(collectives); coll++ {
			r.counted[coll] = r.book.NewWhat(coll.String(), "", "", "")
		}
		for _, t := range DTypes() {
			name := t.String()
			r.messages[isends][t] = r.book.NewWhat("send", name, "", "")
			r.messages[irecvs][t] = r.book.NewWhat("recv", name, "", "")
		}

		for _, o := range Ops() {
			r.book.NewWhat("", "", o.String(), "")
		}
		for _, entry := range l.selector.Entries() {
			r.book.NewWhat("", "", "", entry)
		}
	})
}

// recordSleep records since when the current call waits, for endpoints that call it before a wait
// goes on asleep: then there is time to read the clock.
func (e *engine) recordSleep(waited time.Duration) {
	if e.stage.inside {
		e.records.lane.Sleep(waited)
	}
}

// open starts the communicator's records.
func (l *records) open(o *Option) error {
	if l.recorder == nil {
		if err := l.startRecorder(o); err != nil {
			return err
		}
	}

	if l.timedFrom = timedBytes; l.recorder.times {
		l.timedFrom = 0
	}
	return l.vanishing(func() {
		l.recorder.book.Open(&l.lane, flight.Group{
			ID: o.id, Name: l.name, Rank: l.rank, Size: l.size, Joined: l.joined,
		})
	})
}

// aloneRecords is the memory of a rank that other ranks do not see.
type aloneRecords struct {
	*flight.Heap
	rank int
}

// Part implements transport.Records.
func (a aloneRecords) Part(rank int) []byte {
	if rank != a.rank {
		return nil
	}
	return a.Heap.Part(0)
}

// close ends the communicator's records, and frees the recorder if it was the last user.
func (l *records) close() error {
	r := l.recorder
	if r == nil {
		return nil
	}
	_ = l.vanishing(func() { r.book.Close(&l.lane) })
	if r.users.Add(-1) > 0 {
		return nil
	}
	return r.memory.Free()
}

// vanishing runs f, which touches the memory of the recorder. If that memory has vanished,
// vanishing returns the reason.
func (l *records) vanishing(f func()) (err error) {
	if l.guard == nil {
		f()
		return nil
	}

	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if v := recover(); v != nil {
			if err = l.recorder.memory.Vanished(v); err == nil {
				panic(v)
			}
		}
	}()
	f()
	return nil
}

// recordOf returns the calls of a plan as records have them; if they have a root, with root 0.
func (l *records) recordOf(p *plan) (what flight.What) {
	if l.recorder == nil {
		return 0
	}
	dtype, op := "", ""
	if p.key.dtype != 0 {
		dtype = p.key.dtype.String()
	}

	if p.key.coll.Traits().Reduces {
		op = p.key.op.String()
	}
	_ = l.vanishing(func() {
		what = l.recorder.book.NewWhat(p.key.coll.String(), dtype, op, p.choice.Entry)
	})
	if p.key.coll.Traits().Rooted {
		what = what.WithRoot(0)
	}
	return what
}

// recordPanic records that the call has ended by a panic.
func (l *records) recordPanic() { _ = l.vanishing(func() { l.lane.End(false) }) }

// recordRejected records that this rank has rejected its call. The operation and the root are not
// recorded: they may be what is wrong.
func (l *records) recordRejected(r *request, seq uint64) {
	dtype := ""
	if r.dtype != 0 {
		dtype = r.dtype.String()
	}
	_ = l.vanishing(func() {
		var what flight.What
		if r.coll != collReject { // its caller alone knows the operation
			what = l.recorder.book.NewWhat(r.coll.String(), dtype, "", "")
		}
		l.lane.Reject(seq, what, r.count, r.opts.label)
	})
}

// Mark notes in the flight recorder that this rank begins a part of a step: what it does from now
// on, until its next mark.
//
// A step ends where its group has a mark of another step. `goccl inspect --step` draws the parts
// beside the communication; package ddp marks its steps. A mark costs about 0.1 us. Any goroutine
// may call Mark, also while a call runs, until the communicator is closed. The first 24 bytes of
// the label are kept.
func (c *Communicator) Mark(label string, step int) {
	if c == nil || c.engine.records.recorder == nil || !c.engine.holds.life.HoldOpen() {
		return
	}
	defer c.engine.holds.drop() //nolint:errcheck // Close has returned already
	c.engine.records.mark(label, step)
}

func (l *records) mark(label string, step int) {
	_ = l.vanishing(func() { l.recorder.book.Mark(&l.lane, label, step) })
}

// messageOf returns what a message is.
func (r *recorder) messageOf(m *p2p.Request) flight.What {
	if m.Sending {
		return r.messages[isends][m.Type]
	}
	return r.messages[irecvs][m.Type]
}

// recordMessage records that a message has begun.
func (l *records) recordMessage(r *p2p.Request, label string) (m flight.Pending) {
	if l.recorder == nil {
		return m
	}
	what, count := l.recorder.messageOf(r), len(r.Data)/DType(r.Type).Size()
	_ = l.vanishing(func() {
		m = l.recorder.book.BeginMessage(&l.lane, what, max(r.Peer, -1), r.Tag, count, label, len(r.Data) >= l.timedFrom)
	})
	return m
}

// count adds a call to the counters.
func (l *records) count(coll Collective, c flight.Counter) {
	if l.recorder != nil && l.recorder.metrics {
		_ = l.vanishing(func() { l.lane.Count(l.recorder.counted[coll], c) })
	}
}

// counters returns those of the communicator, by collective.
func (l *records) counters() (all []flight.Counter) {
	if l.recorder == nil {
		return nil
	}
	_ = l.vanishing(func() { all = l.recorder.book.Counters(&l.lane) })
	return all
}

// recordMessageEnd records that a message has ended, and counts it.
func (l *records) recordMessageEnd(m *message, err error) {
	if l.recorder == nil {
		return
	}
	c := flight.Counter{Calls: 1, Bytes: uint64(len(m.Data))}
	if err != nil {
		c.Failures, c.Bytes = 1, 0
	}

	_ = l.vanishing(func() {
		l.recorder.book.EndMessage(m.record, err == nil)
		if l.recorder.metrics {
			l.lane.Count(l.recorder.messageOf(&m.Request), c)
		}
	})
}

// WriteFlight writes the flight recorder as WithFlight does.
//
// Without that option, and for a closed or nil communicator, it does nothing and returns nil. It is
// for callers that fail by other things than a call. It returns an error if the directory or the
// file cannot be made or written, or if the recorder's memory has vanished. Any goroutine may call
// it at any time.
func (c *Communicator) WriteFlight() error {
	if c == nil || c.engine.records.recorder == nil || c.engine.records.recorder.dir == "" || !c.engine.holds.life.HoldOpen() {
		return nil
	}
	defer c.engine.holds.drop() //nolint:errcheck // Close has returned already
	return c.engine.records.writeFlight()
}

// writeFlight is WriteFlight for a communicator that is in use.
func (l *records) writeFlight() error {
	r := l.recorder
	d := flight.Document{
		Version: flight.Version, Job: r.memory.Job(), Size: r.size,
		Writer: fmt.Sprint("rank ", r.rank), Written: time.Now().UTC(),
	}

	err := l.vanishing(func() {
		var clock flight.Clock
		d.Ranks, clock = flight.ReadAll(r.size, r.memory.Part)
		for i := range d.Ranks {
			if g, ok := r.book.OnHeap(&l.lane, clock); ok && d.Ranks[i].Rank == r.rank {
				d.Ranks[i].Groups = append(d.Ranks[i].Groups, g)
			}
		}
	})
	if err != nil {
		return err
	}

	return d.Write(r.dir)
}

// noteFlight writes the flight recorder because a call has failed.
func (l *records) noteFlight() {
	if l.recorder == nil || l.recorder.dir == "" {
		return
	}
	if err := l.writeFlight(); err != nil {
		l.journal.logger.Warn("the flight recorder could not be written", "rank", l.rank, "error", err)
	}
}
