package transporttest

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/transport"
)

// naive is a transport that is plainly right: one mutex, one condition variable, and
// nothing is ever overwritten.
type naive struct {
	*naiveGroup
	rank        int
	timeout     transport.Timeout
	now         *naiveCall // the current call
	arrival     *transport.Arrival
	limit       transport.Timeout
	begin       time.Time
	claims      int        // of the current call, since the rank got RunClaimed
	uncompleted *naiveCall // the last call whose Complete returned an error
	next        naivePiece // what the next flip publishes
	flipped     bool       // Enter was a flip, which the next Flip does not repeat
	lasting     bool       // broken: each flip publishes it again
}

type naiveKind struct {
	copies bool // Staging instead of Memory, and messages in small pieces
	parks  bool // the last arriver runs the bodies of AnyRunner calls, others help with large ones
}

type naiveGroup struct {
	naiveKind
	n        int
	mu       sync.Mutex
	changed  *sync.Cond
	failure  *transport.Failure
	verdict  *bool // of Conclude
	closed   []bool
	calls    map[uint64]*naiveCall
	streams  map[[2]int][]transport.Message
	events   int // failures, departures, refusals
	changes  int // of anything
	letters  map[[2]int][]transport.Message
	waitsFor map[int]int // by rank, 1 + the rank that it waits for
	gaveUp   map[int]bool
	viewed   map[[2]int]bool
	p2ps     []*naiveP2P
	further  map[string][]*naive // by number and members: groups that not all members have joined
}

// naiveCall is what is known of one call, by rank.
type naiveCall struct {
	entered              []*transport.Arrival
	refused, done, out   []bool
	why                  []string // of those that refused
	pieces               [][]naivePiece
	open, ended          bool // the last arriver is there; all bodies have been run
	claimed, run, active int  // bodies handed out and run; ranks that run them
}

type naivePiece struct {
	input  []byte
	lo, hi int // of the result
}

const naivePieceBytes = 160

// room returns the input at the length of the longest piece.
func (p *naivePiece) room() []byte {
	if p.input == nil {
		p.input = make([]byte, naivePieceBytes)
	}
	return p.input
}

// newNaive connects ranks through a naive transport.
func newNaive(n int, kind naiveKind) []*naive {
	g := &naiveGroup{
		naiveKind: kind, n: n, closed: make([]bool, n),
		calls: map[uint64]*naiveCall{}, streams: map[[2]int][]transport.Message{},
		waitsFor: map[int]int{}, gaveUp: map[int]bool{}, letters: map[[2]int][]transport.Message{}, viewed: map[[2]int]bool{}, further: map[string][]*naive{},
	}
	g.changed = sync.NewCond(&g.mu)
	eps := make([]*naive, n)
	for i := range eps {
		eps[i] = &naive{naiveGroup: g, rank: i}
		g.p2ps = append(g.p2ps, &naiveP2P{naive: eps[i]})
	}
	return eps
}

func (g *naiveGroup) call(seq uint64) *naiveCall {
	if g.calls[seq] == nil {
		g.calls[seq] = &naiveCall{
			entered: make([]*transport.Arrival, g.n), refused: make([]bool, g.n), why: make([]string, g.n), done: make([]bool, g.n),
			out: make([]bool, g.n), pieces: make([][]naivePiece, g.n),
		}
	}
	return g.calls[seq]
}

// locked runs f, which may change the group, and wakes all ranks.
func (g *naiveGroup) locked(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	g.changes++
	g.changed.Broadcast()
}

// wake wakes all ranks. It holds the mutex, so as not to fall between a rank's look at
// what it waits for and its sleep.
func (g *naiveGroup) wake() { g.locked(func() {}) }

func (ep *naive) Conclude(formed bool) (isFormed bool) {
	ep.locked(func() {
		if ep.verdict == nil {
			ep.verdict = &formed
		}
		isFormed = *ep.verdict
	})
	return isFormed
}

// wakeOften wakes the rank once in a period, until stop is called.
func (ep *naive) wakeOften(period time.Duration) (stop func()) {
	ticker, stopped := time.NewTicker(period), make(chan struct{})
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				ep.wake()
			case <-stopped:
				return
			}
		}
	}()
	return func() { close(stopped) }
}

// await waits until there(q) is true for every other rank q. It is called and returns with the
// mutex held.
func (ep *naive) await(there func(rank int) bool) error {
	if ep.limit.After > 0 {
		defer time.AfterFunc(time.Until(ep.begin.Add(ep.limit.After)), ep.wake).Stop()
		defer time.AfterFunc(time.Until(ep.begin.Add(ep.limit.After/2)), ep.wake).Stop()
	}
	if ep.limit.After < 0 {
		defer ep.wakeOften(-ep.limit.After / 2)()
	}
	defer context.AfterFunc(ep.arrival.Ctx, ep.wake)()
	for {
		var absent []int
		for q := range ep.n {
			if q != ep.rank && !there(q) {
				absent = append(absent, q)
			}
		}
		if len(absent) == 0 {
			return nil
		}
		if err := ep.interrupted(absent); err != nil {
			return err
		}
		ep.changed.Wait()
	}
}

func (ep *naive) interrupted(absent []int) error {
	if ep.closed[ep.rank] {
		return transport.ErrClosed
	}
	if ep.failure != nil {
		return transport.ErrFailed
	}
	var missing []int
	for _, q := range absent {
		for seq := ep.arrival.Seq - 1; ep.call(seq).refused[ep.rank]; seq-- {
			if ep.call(seq).entered[q] != nil {
				return &transport.RejectedError{Ranks: []int{ep.rank}, Why: []string{ep.call(seq).why[ep.rank]}, Seq: seq}
			}
		}
		if ep.now.refused[q] {
			return &transport.RejectedError{Ranks: []int{q}, Why: []string{ep.now.why[q]}, Seq: ep.arrival.Seq}
		}
		if ep.closed[q] {
			return &transport.PeerLostError{Rank: q}
		}
		if ep.now.entered[q] == nil {
			missing = append(missing, q)
		}
	}
	if err := ep.arrival.Ctx.Err(); err != nil {
		return err
	}
	if limit := ep.limit.After.Abs(); ep.limit.After < 0 && time.Since(ep.begin) >= limit/2 {
		ep.limit.Warn(ep.arrival.Seq, missing)
		ep.begin = ep.begin.Add(limit)
	}
	if after := time.Since(ep.begin); ep.limit.After > 0 {
		if after >= ep.limit.After/2 && ep.limit.Warn != nil {
			ep.limit.Warn(ep.arrival.Seq, missing)
			ep.limit.Warn = nil
		}
		if after >= ep.limit.After {
			e := &transport.TimeoutError{Missing: missing, Seq: ep.arrival.Seq, After: ep.limit.After}
			if len(missing) == 0 {
				e.Behind = absent
			}
			return e
		}
	}
	return nil
}

func (ep *naive) Rank() int    { return ep.rank }
func (ep *naive) Size() int    { return ep.n }
func (ep *naive) Name() string { return "naive" }

func (ep *naive) SetTimeout(t transport.Timeout) { ep.timeout = t }
func (ep *naive) PayloadLimit() int              { return 1000 }

func (ep *naive) Enter(e *transport.Arrival) (role transport.Role, err error) {
	ep.locked(func() { role, err = ep.enter(e) })
	return role, err
}

func (ep *naive) enter(e *transport.Arrival) (transport.Role, error) {
	if ep.closed[ep.rank] {
		ep.now = nil
		return transport.RunOwn, transport.ErrClosed
	}
	ep.publish(e)
	c := ep.now
	last := !slices.Contains(c.entered, nil)
	if err := ep.await(func(q int) bool { return c.entered[q] != nil }); err != nil {
		return transport.RunOwn, err
	}
	for _, other := range c.entered {
		if other.Hash != e.Hash {
			return transport.RunOwn, &transport.MismatchError{Seq: e.Seq}
		}
	}
	if ranks := c.overlapped(); ranks != nil && !ep.copies {
		return transport.RunOwn, &transport.OverlapError{Ranks: ranks, Seq: e.Seq}
	}
	switch {
	case e.Exposed && ep.failure != nil:
		return transport.RunOwn, transport.ErrFailed
	case !ep.parks || !e.AnyRunner:
		return transport.RunOwn, nil
	case last:
		c.open = true
		c.active++
		return transport.RunClaimed, nil
	}
	help := false
	err := ep.await(func(int) bool {
		help = c.open && e.Work > 1<<20 && c.claimed < ep.n && ep.failure == nil
		return c.ended || help
	})
	if help && err == nil {
		c.active++
		return transport.RunClaimed, nil
	}
	return transport.RunNone, err
}

// overlapped returns the first rank that writes what others brought, and those others.
func (c *naiveCall) overlapped() []int {
	for p, a := range c.entered {
		var ranks []int
		for q, b := range c.entered {
			if p == q || a.Writes.Overlaps(b.Writes) || (len(b.Payload) == 0 || len(b.Payload) > transport.InlineBytes) && a.Writes.Overlaps(b.Reads) {
				ranks = append(ranks, q)
			}
		}
		if len(ranks) > 1 {
			return ranks
		}
	}
	return nil
}

// publish shows all ranks what this rank brings to a call.
func (ep *naive) publish(e *transport.Arrival) {
	ep.goesOn()
	line := *e
	line.Payload = bytes.Clone(e.Payload)
	ep.now, ep.arrival, ep.begin, ep.claims = ep.call(e.Seq), e, time.Now(), 0
	ep.now.entered[ep.rank] = &line
	if ep.flipped = e.Staged && ep.copies; ep.flipped {
		ep.flip()
	}
	ep.limit = ep.timeout
	if e.Limit.After != 0 {
		ep.limit = e.Limit
	}
	ep.changed.Broadcast()
}

func (ep *naive) Claim() (rank int, ok bool) {
	ep.locked(func() {
		if ok = ep.now.claimed < ep.n && ep.failure == nil; ok {
			rank = ep.now.claimed
			ep.now.claimed++
			ep.claims++
		}
	})
	return rank, ok
}

func (ep *naive) Release(failed bool) (err error) {
	ep.locked(func() {
		c := ep.now
		if !failed {
			c.run += ep.claims
		}
		c.ended = c.run == ep.n
		c.active--
		ep.changed.Broadcast()
		err = ep.await(func(int) bool { return c.ended })
	})
	return err
}

func (ep *naive) Complete() (err error) {
	ep.locked(func() {
		ep.now.done[ep.rank] = true
		ep.changed.Broadcast()
		if err = ep.await(func(q int) bool { return ep.now.done[q] }); err != nil {
			ep.uncompleted = ep.now
		}
	})
	return err
}

func (ep *naive) Payload(rank, n int) []byte {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.now.entered[rank].Payload[:n]
}

func (ep *naive) Fingerprint(rank int) transport.Fingerprint {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.now.entered[rank].Fingerprint
}

func (ep *naive) Reject(seq uint64, why string) {
	ep.locked(func() {
		ep.call(seq).why[ep.rank] = why[:min(len(why), transport.ReasonBytes)]
		ep.call(seq).refused[ep.rank] = true
		ep.goesOn()
		ep.events++
	})
}

func (ep *naive) Fail(f *transport.Failure) (recorded *transport.Failure) {
	ep.locked(func() {
		if ep.failure == nil {
			ep.failure = f
			ep.events++
		}
		recorded = ep.failure
	})
	return recorded
}

func (ep *naive) Failed() bool { return ep.Failure() != nil }

func (ep *naive) Failure() *transport.Failure {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.failure
}

func (ep *naive) Withdraw() (ended bool) {
	ep.locked(func() {
		c := ep.now
		if c == nil {
			return
		}
		c.out[ep.rank] = true
		ep.changed.Broadcast()
		end := time.Now().Add(ep.limit.After)
		if ep.limit.After > 0 {
			defer time.AfterFunc(ep.limit.After, ep.wake).Stop()
		}
		for q := 0; q < ep.n; {
			mayTouch := ep.arrival.Exposed && q != ep.rank && c.entered[q] != nil && !c.done[q] && !c.out[q]
			if ep.parks && ep.arrival.AnyRunner {
				mayTouch = c.active > 0
			}
			if mayTouch && (ep.limit.After == 0 || time.Now().Before(end)) {
				ep.changed.Wait()
			} else {
				q++
			}
		}
		ended = c.ended || c == ep.uncompleted && !slices.Contains(c.done, false)
	})
	return ended
}

func (ep *naive) Free() error { return nil }

func (ep *naive) Close() error {
	ep.locked(func() {
		ep.closed[ep.rank] = true
		ep.events++
	})
	return nil
}

// room is how many bytes of a message travel at once. It is chosen so that the parts of
// the suite and of the transport differ.
func (ep *naive) room(m *transport.Message) int {
	if ep.copies {
		return min(len(m.Bytes), 1000)
	}
	return len(m.Bytes)
}

func (ep *naive) Put(to int, m *transport.Message) (n int, err error) {
	ep.locked(func() {
		stream := [2]int{ep.rank, to}
		err = ep.await(func(q int) bool { return q != to || len(ep.streams[stream]) == 0 })
		if err == nil {
			n = ep.room(m)
			piece := *m
			piece.Bytes = m.Bytes[:n]
			if ep.copies {
				piece.Bytes = bytes.Clone(piece.Bytes)
			}
			ep.streams[stream] = append(ep.streams[stream], piece)
		}
	})
	return n, err
}

func (ep *naive) Drain(to int) (err error) {
	ep.locked(func() {
		err = ep.await(func(q int) bool { return q != to || len(ep.streams[[2]int{ep.rank, to}]) == 0 })
	})
	return err
}

func (ep *naive) Next(from int) (view transport.Message, err error) {
	ep.locked(func() {
		stream := [2]int{from, ep.rank}
		err = ep.await(func(q int) bool { return q != from || len(ep.streams[stream]) > 0 })
		if err == nil {
			view = ep.streams[stream][0]
		}
	})
	return view, err
}

func (ep *naive) Take(from int) {
	ep.locked(func() { ep.streams[[2]int{from, ep.rank}] = ep.streams[[2]int{from, ep.rank}][1:] })
}

func (ep *naive) Memory() transport.Memory {
	if ep.copies {
		return nil
	}
	return ep
}

func (ep *naive) Staging() transport.Staging {
	if ep.copies {
		return ep
	}
	return nil
}

func (ep *naive) Buffers(rank int) (send, recv []byte) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.now.entered[rank].Send, ep.now.entered[rank].Recv
}

func (ep *naive) Displs(rank int) []int {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.now.entered[rank].Displs
}

func (ep *naive) PieceBytes() int { return naivePieceBytes }

func (ep *naive) PutInput(piece []byte, _, _ int) { copy(ep.next.room(), piece) }

func (ep *naive) PutResult(lo, hi int) { ep.next.lo, ep.next.hi = lo, hi }

func (ep *naive) Flip() (err error) {
	if ep.flipped {
		ep.flipped = false
		return nil
	}
	ep.locked(func() {
		ep.flip()
		err = ep.await(func(q int) bool { return len(ep.now.pieces[q]) >= len(ep.now.pieces[ep.rank]) })
	})
	return err
}

func (ep *naive) ResolveFlip() (isComplete bool) {
	ep.locked(func() {
		c := ep.now
		c.out[ep.rank] = true
		ep.changed.Broadcast()
		hasArrived := func(q int) bool { return len(c.pieces[q]) >= len(c.pieces[ep.rank]) }

		isComplete = true
		for q := range ep.n {
			for !hasArrived(q) && !c.out[q] {
				ep.changed.Wait()
			}
			isComplete = isComplete && hasArrived(q)
		}
	})
	return isComplete
}

// flip publishes what the rank has put.
func (ep *naive) flip() {
	ep.next.room()
	ep.now.pieces[ep.rank] = append(ep.now.pieces[ep.rank], ep.next)
	ep.next.input = nil
	if !ep.lasting {
		ep.next = naivePiece{}
	}
	ep.changed.Broadcast()
}

// piece is what rank published by this rank's last flip.
func (ep *naive) piece(rank int) *naivePiece {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return &ep.now.pieces[rank][len(ep.now.pieces[ep.rank])-1]
}

func (ep *naive) Input(rank, n int) []byte { return ep.piece(rank).input[:n] }

func (ep *naive) Result(rank int) (lo, hi int, result []byte) {
	p := ep.piece(rank)
	if p.lo == p.hi {
		return p.lo, p.hi, nil
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	mine := ep.now.pieces[ep.rank]
	return p.lo, p.hi, mine[len(mine)-2].input[p.lo:p.hi]
}
