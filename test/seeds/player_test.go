//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/calls"
)

// messageTime is how long a message waits. Calls wait for a minute.
const messageTime = time.Second

// player does the part of one rank in a job.
type player struct {
	job    *job
	rank   int
	ctx    context.Context
	cancel context.CancelFunc
	works  []*started
	again  ccl.Work

	hasSeen bool                 // a Drain has returned the errors of works
	beside  interleave.WaitGroup // goroutines that drain

	mu       interleave.Mutex
	looks    []func()
	since    time.Time           // when the present event began,
	sinceAt  int64               // and at which moment
	comms    []*ccl.Communicator // by the number of the group; nil: none
	left     []*leaving          // by the number of the group
	outcomes []*outcome
	drained  []*outcome // of beside
	wrongs   []error    // what the rank has found by itself
}

// outcome is the end of a call or of a message of a rank.
type outcome struct {
	rank  int
	event *event
	stage int // of an event that has several calls
	kind  string
	begun int64 // of what was started and waited for later
	first int64 // the moment at which the rank came to it,
	at    int64 // and at which it saw its end
	from  time.Time
	to    time.Time
	err   error

	groupErr error // why the group had failed by then
}

func (o *outcome) String() string {
	return fmt.Sprintf("%v, %s of rank %d, stage %d, at %d: %v", o.event, o.kind, o.rank, o.stage, o.at, o.err)
}

// started is a call or a message that the rank has started.
type started struct {
	work  *ccl.Work
	event *event
	begun int64
	first int64
	from  time.Time
	end   func(err error)
}

func (j *job) newPlayer(rank int) *player {
	p := &player{job: j, rank: rank, comms: make([]*ccl.Communicator, len(j.groups)), left: make([]*leaving, len(j.groups))}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// play does the rank's part of all events, until it leaves.
func (p *player) play() {
	f := &p.job.fault
	for _, e := range p.job.events {
		if f.event == e.number && f.rank == p.rank && !p.strike() {
			break
		}
		if s := &p.job.second; s.event == e.number && s.rank == p.rank && s.step == 0 {
			p.strikeSecond()
		}
		p.drainBeside(e)
		if e.group.rank(p.rank) < 0 {
			continue
		}
		p.since, p.sinceAt = time.Now(), interleave.Moment()
		c := p.comm(e.group)
		if c == nil {
			continue
		}

		switch e.what {
		case call:
			if p.call(e, c); p.job.leavesRefused && f.event == e.number && f.rank == p.rank {
				p.close(p.job.groups)
				return
			}
		case message:
			p.message(e, c)
		case drain:
			p.drain(e, c)
		case wait:
			p.wait(func(*started) bool { return true })
		case region:
			p.region(e, c)
		case form:
			p.form(e, c)
		}
	}
	p.wait(func(*started) bool { return true })
	if p.job.options != nil {
		p.beside.Wait()
		p.outcomes = append(p.outcomes, p.drained...)
	}
}

func (p *player) comm(g *group) *ccl.Communicator {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.comms[g.number]
}

// strike does what goes wrong between calls, and reports whether the rank goes on.
func (p *player) strike() (goOn bool) {
	f := &p.job.fault
	groups := p.job.groups
	if f.group != nil {
		groups = []*group{f.group}
	}

	p.mu.Lock()
	if f.when == 0 {
		f.when = interleave.Moment()
	}
	p.mu.Unlock()
	switch f.way {
	case wayCloses:
		p.close(groups)
	case wayLeaves:
		p.close(groups)
		return false
	case wayAborts:
		p.abort(groups)
	case wayGives:
		p.abort(groups)
		p.close(groups)
		return false
	case wayCancels:
		p.cancel()
	case wayStalls:
		interleave.Stall(label(p.rank), f.delay)
	case waySleeps:
		interleave.Sleep(f.delay)
	}
	return true
}

// strikeSecond gives up as a second rank.
func (p *player) strikeSecond() {
	p.mu.Lock()
	if f := &p.job.fault; f.when == 0 {
		f.when = interleave.Moment()
	}
	p.mu.Unlock()
	for _, g := range p.job.groups {
		if c := p.comm(g); c != nil {
			c.Abort(errTired)
		}
	}
}

func (p *player) abort(groups []*group) {
	for _, g := range groups {
		if c := p.comm(g); c != nil {
			c.Abort(errGone)
		}
	}
}

// close leaves groups.
func (p *player) close(groups []*group) {
	for _, g := range groups {
		c := p.comm(g)
		if c == nil {
			continue
		}
		l := &leaving{at: interleave.Moment(), isRunning: true}
		p.mu.Lock()
		isFirst := p.left[g.number] == nil
		if isFirst {
			p.left[g.number] = l
		}
		p.mu.Unlock()

		l.err = c.Close()
		l.isRunning = false
		l.failure = c.Err()
		if late, ok := errors.AsType[*ccl.UnfinishedError](l.err); l.err != nil && (!isFirst || !ok || late.Calls+late.Sends+late.Receives == 0) {
			p.wrongf("close: of group %d returns %v", g.number, l.err)
		}
	}
}

// leaving is how a rank has left a group.
type leaving struct {
	at           int64 // when it began to
	err, failure error // of Close, and of the group then
	isRunning    bool
}

func (p *player) note(e *event, kind string, stage int, err error) {
	o := &outcome{rank: p.rank, event: e, kind: kind, stage: stage, first: p.sinceAt, at: interleave.Moment(), from: p.since, to: time.Now(), err: err}
	if c := p.comm(e.group); c != nil {
		o.groupErr = c.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outcomes = append(p.outcomes, o)
}

// lookAgain calls look at the end.
func (p *player) lookAgain(look func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks = append(p.looks, look)
}

func (p *player) wrongf(format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrongs = append(p.wrongs, fmt.Errorf("rank %d: "+format, append([]any{p.rank}, values...)...))
}

// start notes what the rank waits for later.
func (p *player) start(w *ccl.Work, e *event, end func(err error)) {
	p.works = append(p.works, &started{w, e, interleave.Moment(), p.sinceAt, p.since, end})
}

// wait waits for what the rank has started.
func (p *player) wait(isMeant func(*started) bool) {
	works := p.works
	p.works = nil
	for _, s := range works {
		if !isMeant(s) {
			p.works = append(p.works, s)
			continue
		}
		if p.job.hasMoments && (s.event.number+p.rank)%2 == 0 {
			s.end(p.awaitTwice(s))
		} else {
			interleave.Receive(s.work.Done())
			s.end(s.work.Wait(context.Background()))
		}
		o := p.outcomes[len(p.outcomes)-1]
		o.begun, o.first, o.from = s.begun, s.first, s.from
	}
}

func (p *player) call(e *event, c *ccl.Communicator) {
	opts := p.options(e)
	f, a := &p.job.fault, e.attempts[p.rank]
	isMine := f.event == e.number && f.rank == p.rank
	if p.job.leavesRefused && isMine {
		p.wait(func(*started) bool { return true })
	}
	e.setInside(p.rank, true)
	switch {
	case f.event == e.number && (f.way == wayAllRefuse || f.way == wayRefuses && isMine):
		p.note(e, "call", 0, ccl.AllReduce(p.ctx, c, make([]float32, 3), make([]float32, 4), ccl.Sum, opts...))
		return
	case f.way == wayDiffers && isMine:
		a = e.other
		if e.otherKey {
			opts = append(opts, ccl.WithKey("another"))
		}
		if e.call.Coll != ccl.CollBarrier { // another collective may not have the algorithm
			opts = append(opts, ccl.WithAlgorithm("direct"))
		}
	case f.way == wayOverlaps && isMine:
		var beside interleave.WaitGroup
		beside.Go(func() { p.end(e, "call beside", e.other, e.other.Make(p.ctx, c, opts...)) })
		defer beside.Wait()
	}

	if !e.isLate[p.rank] {
		p.end(e, "call", a, a.Make(p.ctx, c, opts...))
		return
	}
	end := func(err error) { p.end(e, "call", a, err) }
	if !e.again[p.rank] {
		p.start(a.Start(p.ctx, c, opts...), e, end)
		return
	}
	p.wait(func(s *started) bool { return s.work == &p.again })
	_ = a.Make(p.ctx, c, append(opts, ccl.WithWork(&p.again))...) // the Work has the error
	p.start(&p.again, e, end)
}

func (p *player) options(e *event) (opts []ccl.CallOption) {
	if e.algorithm != "" {
		opts = append(opts, ccl.WithAlgorithm(e.algorithm))
	}
	if d := p.job.waitOf(e, p.rank); d != 0 {
		opts = append(opts, ccl.WithTimeout(d))
	}
	if p.job.isKeyed {
		opts = append(opts, ccl.WithKey(fmt.Sprint(e.number)))
	}
	return opts
}

// end notes the end of a call. Its buffers are the rank's again, which overwrites them.
func (p *player) end(e *event, kind string, a calls.Attempt, err error) {
	e.setInside(p.rank, false)
	p.note(e, kind, 0, err)
	wrong := a.Fences()
	if err == nil && wrong == nil {
		wrong = a.Right()
	}
	if wrong != nil {
		p.wrongf("buffers: %v, after %v: %v", e, err, wrong)
	}
	if err == nil && e.call.Results != nil && a == e.attempts[p.rank] {
		_ = a.Note() // it has no error
	}
	a.Spoil()
	p.lookAgain(func() {
		if wrong := a.Untouched(); wrong != nil {
			p.wrongf("written late: %v, after %v: %v", e, err, wrong)
		}
	})
}

func (p *player) message(e *event, c *ccl.Communicator) {
	opts := []ccl.CallOption{ccl.WithTimeout(messageTime)}
	if p.rank == e.from {
		x, to := e.data(), e.group.rank(e.to)
		end := func(err error) { p.endMessage(e, "send", x, err) }
		if e.isLate[p.rank] {
			p.start(ccl.Isend(p.ctx, c, x, to, e.number, opts...), e, end)
		} else {
			end(ccl.Send(p.ctx, c, x, to, e.number, opts...))
		}
	}
	if p.rank != e.to {
		return
	}

	x, from := make([]int32, e.length), e.group.rank(e.from)
	if e.isAny {
		from = ccl.AnySource
	}
	if e.isLate[p.rank] && e.from != e.to {
		w := ccl.Irecv(p.ctx, c, x, from, e.number, opts...)
		p.start(w, e, func(err error) { p.endReceive(e, x, w.Source(), err) })
		return
	}
	source, err := ccl.Recv(p.ctx, c, x, from, e.number, opts...)
	p.endReceive(e, x, source, err)
}

func (e *event) data() []int32 {
	x := make([]int32, e.length)
	for i := range x {
		x[i] = int32(e.number<<16 + i)
	}
	return x
}

const spoilt = -7

func (p *player) endReceive(e *event, x []int32, source int, err error) {
	if err == nil && source != e.group.rank(e.from) {
		p.wrongf("buffers: %v is from rank %d", e, source)
	}
	p.endMessage(e, "receive", x, err)
}

func (p *player) endMessage(e *event, kind string, x []int32, err error) {
	p.note(e, kind, 0, err)
	if (err == nil || kind == "send") && !slices.Equal(x, e.data()) {
		p.wrongf("buffers: %s of %v, after %v: %v", kind, e, err, x)
	}
	for i := range x {
		x[i] = spoilt
	}
	p.lookAgain(func() {
		if i := slices.IndexFunc(x, func(y int32) bool { return y != spoilt }); i >= 0 {
			p.wrongf("written late: %s of %v, after %v: element %d is %d", kind, e, err, i, x[i])
		}
	})
}

func (p *player) drain(e *event, c *ccl.Communicator) {
	_, _, before := p.unfinished(e.group)
	err := c.Drain(context.Background())
	p.note(e, "drain", 0, err)
	p.checkDrained(e, err)
	calls, sends, receives := p.unfinished(e.group)
	left, ok := errors.AsType[*ccl.UnfinishedError](err)
	switch {
	case calls+sends > 0, receives > 0 && !ok:
		p.wrongf("drain: %v has returned %v, and %d calls, %d sends and %d receives have not ended", e, err, calls, sends, receives)
	case ok && (left.Calls+left.Sends > 0 || left.Receives < max(receives, 1) || left.Receives > before):
		p.wrongf("drain: %v has returned %v, of %d receives before and %d after it", e, err, before, receives)
	}
}

// unfinished counts what the rank has started in a group and has not ended.
func (p *player) unfinished(g *group) (calls, sends, receives int) {
	for _, s := range p.works {
		if s.event.group != g {
			continue
		}
		select {
		case <-s.work.Done():
			continue
		default:
		}
		switch {
		case s.event.what == call:
			calls++
		case s.event.to == p.rank && s.event.from != p.rank:
			receives++
		default:
			sends++
		}
	}
	return calls, sends, receives
}

func (p *player) region(e *event, c *ccl.Communicator) {
	r, err := ccl.CreateSharedRegion[int32](p.ctx, c, e.length)
	p.note(e, "region", 0, err)
	if err != nil {
		return
	}
	defer r.Close()
	for i := range r.BlockSlice() {
		r.BlockSlice()[i] = int32(e.number)
	}
	for stage := 1; stage < 3; stage++ {
		err := r.Fence(p.ctx)
		p.note(e, "region", stage, err)
		if err != nil {
			return
		}
		if i := slices.IndexFunc(r.Slice(), func(x int32) bool { return x != int32(e.number) }); i >= 0 {
			p.wrongf("buffers: %v, element %d is %d", e, i, r.Slice()[i])
		}
	}
}

func (p *player) form(e *event, c *ccl.Communicator) {
	var made *ccl.Communicator
	var err error
	if e.bySplit {
		color := -1
		if e.made.rank(p.rank) >= 0 {
			color = 1
		}
		made, err = c.Split(p.ctx, color, e.made.rank(p.rank))
	} else {
		var ranks []int
		for _, m := range e.made.members {
			ranks = append(ranks, e.group.rank(m))
		}
		made, err = c.NewGroup(p.ctx, ranks)
	}
	p.note(e, "form", 0, err)

	switch {
	case (made != nil) != (err == nil && e.made.rank(p.rank) >= 0):
		p.wrongf("form: %v: got %v", e, made)
	case made != nil && (made.Size() != len(e.made.members) || made.Rank() != e.made.rank(p.rank)):
		p.wrongf("form: %v: is rank %d of %d", e, made.Rank(), made.Size())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.comms[e.made.number] = made
}
