package stress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// A Kind is the kind of operation of an Outcome.
type Kind string

const (
	Call     Kind = "call"     // a collective
	Send     Kind = "send"     // or the send of an exchange that succeeded
	Recv     Kind = "recv"     // or the receive of one
	Retry    Kind = "retry"    // of a receive that failed
	Exchange Kind = "exchange" // one that failed
)

// An Outcome is the end of a call, a send or a receive of a rank.
type Outcome struct {
	Event, Index, Group int
	Kind                Kind
	Text                string
	From, To            int // of a message, ranks of the job

	At     int64  // time at which the rank saw the end, in nanoseconds
	Err    string // "" if it succeeded
	Closed bool   // the error is ErrClosed,
	Lost   []int  // or PeerLostError with this rank of the job,
	By     []int  // or AbortedError with this one,
	Left   []int  // or TimeoutError of a receive from any rank, with these that have left
	Late   []int  // or TimeoutError with these that are missing or behind
	Queued bool   // or TimeoutError that names none: an earlier call of the rank still ran
	Refuse []int  // or MismatchError because these have rejected the call
	Other  bool   // or MismatchError because another message with the tag has come
	Failed bool   // the group had failed by then

	idle time.Duration // since the outcome before
}

func (o *Outcome) ok() bool { return o.Err == "" }

// A Leaving is the departure of a rank from a group.
type Leaving struct {
	Way     Way
	Started int64 // in nanoseconds
	Err     error `json:"-"` // of Close or Destroy, or of both
}

// An Account records the operations of one rank. Run makes it, Settle completes it. It can
// be encoded as JSON.
type Account struct {
	Rank       int
	Way        Way // how the caller of Run must end the worker: Return, Fail or "" (not at all)
	Outcomes   []Outcome
	Left       []*Leaving // by the number of the group; nil: the rank is not in it, or has not left
	Violations []string   // violations that the rank has seen by itself

	isStalled bool
	stalledAt int64     // in nanoseconds
	wasHeldUp bool      // others have not come to the first barrier, or to a group, in time
	noted     time.Time // when the last outcome was noted
	cutOff    *Leaving  // from when on others may find its process lost, although it lives
	mu        interleave.Mutex
	works     []*started
	looks     []func()
	watch     interleave.WaitGroup
}

func (a *Account) report(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Violations = append(a.Violations, fmt.Sprintf(format, args...))
}

// leave notes that the rank is about to leave groups, and reports whether it was still in
// all of them.
func (a *Account) leave(groups []*group, way Way) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first = true
	now := interleave.Moment()
	for _, g := range groups {
		if a.Left[g.number] == nil {
			a.Left[g.number] = &Leaving{Way: way, Started: now}
		} else {
			first = false
		}
	}
	return first
}

// noteError notes the error of a Close or a Destroy.
func (a *Account) noteError(groups []*group, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range groups {
		l := a.Left[g.number]
		l.Err = errors.Join(l.Err, err)
	}
}

// counted checks that closing a group returned an error if that dropped operations.
func (a *Account) counted() {
	for number, l := range a.Left {
		if l == nil || l.Way == Return || l.Way == Fail || l.Err != nil {
			continue
		}
		for _, b := range a.works {
			if o := &b.ending.what; b.ending.group.number == number && b.at < l.Started && o.Closed && !o.Failed {
				a.report("not counted: %s was dropped, and the %s that did it returned nil", b.ending.text(), l.Way)
			}
		}
	}
}

// ended notes an outcome. The buffers are the rank's again: ended checks and overwrites them
// at once.
func (a *Account) ended(c *ccl.Communicator, e *ending, err error) {
	o := e.what
	o.Group, o.At = e.group.number, interleave.Moment()
	look := e.check
	if err != nil {
		look = e.input
		o.blame(e.group, err)
	}
	var bad error
	if look != nil {
		bad = look()
	}

	e.spoil()
	o.Failed = c.Err() != nil
	if bad != nil {
		a.report("buffers: %s, after %q: %v", e.text(), o.Err, bad)
	}

	untouched := e.untouched
	a.mu.Lock()
	defer a.mu.Unlock()

	now := time.Now()
	o.idle, a.noted = now.Sub(a.noted), now
	a.Outcomes = append(a.Outcomes, o)

	e.what = o
	if untouched != nil {
		a.looks = append(a.looks, func() {
			if err := untouched(); err != nil {
				a.report("written late: %s, after %q: %v", e.text(), o.Err, err)
			}
		})
	}
}

func (e *ending) text() string {
	return fmt.Sprintf("event %d, %s of %s", e.what.Event, e.what.Kind, e.what.Text)
}

// blame notes an error and the rank that it names.
func (o *Outcome) blame(g *group, err error) {
	o.Err = err.Error()
	rank := func(r int) []int {
		if r < 0 || r >= g.size() {
			return []int{-1}
		}
		return []int{g.members[r]}
	}

	if e, ok := errors.AsType[*transport.AbortedError](err); ok {
		o.By = rank(e.By)
	} else if e, ok := errors.AsType[*transport.PeerLostError](err); ok {
		o.Lost = rank(e.Rank)
	} else if e, ok := errors.AsType[*transport.TimeoutError](err); ok {
		for _, r := range e.Left {
			o.Left = append(o.Left, rank(r)...)
		}

		for _, r := range slices.Concat(e.Missing, e.Behind) {
			o.Late = append(o.Late, rank(r)...)
		}
		o.Queued = o.Late == nil

	} else if e, ok := errors.AsType[*ccl.MismatchError](err); ok {
		for _, v := range e.Values {
			for i := 0; v.Outcome == transport.OutcomeRejected && i < len(v.Ranks); i++ {
				o.Refuse = append(o.Refuse, rank(v.Ranks[i])...)
			}
		}
		o.Other = o.Refuse == nil && o.Kind != Call
	} else {
		o.Closed = errors.Is(err, ccl.ErrClosed)
	}
}

// starts notes a started operation. It watches every second one for its end.
func (a *Account) starts(c *ccl.Communicator, b *started) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.at, b.comm = interleave.Moment(), c
	a.works = append(a.works, b)
	if len(a.works)%2 == 0 {
		a.watch.Go(func() { a.await(b) })
	}
}

// await notes the outcome of a started operation.
func (a *Account) await(b *started) {
	err := b.work.Wait(context.Background())
	b.noted.Do(func() { a.ended(b.comm, &b.ending, err) })
}

// Settle notes the outcomes of all started operations, and checks the buffers a last time. The
// rank must have left all its groups. Without patience it waits without limit.
func (a *Account) Settle(patience time.Duration) {
	var limit <-chan time.Time
	if patience > 0 {
		t := interleave.NewTimer(patience)
		defer t.Stop()
		limit = t.C
	}

	for _, b := range a.works {
		if interleave.First(b.work.Done(), limit) == 1 {
			a.report("no end: %s, a Work, has neither a result nor an error", b.ending.text())
			return
		}
		a.await(b)
	}

	a.watch.Wait()
	a.counted()
	for _, look := range a.looks {
		look()
	}
}

// Check returns the violations of the package's rules in the accounts of all ranks, by rank.
func (p *Departures) Check(accounts []*Account) error {
	c := &checking{program: p, accounts: accounts}
	for _, a := range accounts {
		for _, text := range a.Violations {
			c.report(a.Rank, "%s", text)
		}

		for i := range a.Outcomes {
			o := &a.Outcomes[i]
			c.names(a, o)
			if c.dropped(a.Rank, o) {
				c.report(a.Rank, "dropped: %v, and its worker returned without an error", o)
			}
		}
	}
	for _, g := range p.groups {
		c.calls(g)
	}

	c.messages()
	return errors.Join(c.errs...)
}

type checking struct {
	program  *Departures
	accounts []*Account
	errs     []error
}

func (c *checking) report(rank int, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("program %d, rank %d: "+format, append([]any{c.program.program.seed, rank}, args...)...))
}

// isLate reports whether a rank has stood still for longer than calls wait.
func (c *checking) isLate() bool { return c.stalledAt() < math.MaxInt64 }

// stalledAt returns when the first rank began to stand still.
func (c *checking) stalledAt() int64 {
	at := int64(math.MaxInt64)
	for _, a := range c.accounts {
		if a.isStalled {
			at = min(at, a.stalledAt)
		}
	}
	return at
}

func (o *Outcome) String() string {
	text := fmt.Sprintf("event %d, %s", o.Event, o.Kind)
	if o.Kind != Call {
		text += fmt.Sprintf(" %d", o.Index)
	}
	return fmt.Sprintf("%s of %s (%q)", text, o.Text, o.Err)
}

// names checks that an error results from a departure, and names a rank that has left.
func (c *checking) names(a *Account, o *Outcome) {
	leaving := func(ranks []int) *Leaving {
		if ranks[0] < 0 {
			return nil
		}
		for _, l := range []*Leaving{c.accounts[ranks[0]].Left[o.Group], c.accounts[ranks[0]].cutOff} {
			if l != nil && l.Started <= o.At {
				return l
			}
		}
		return nil
	}

	switch {
	case o.ok():
	case o.Closed:
		if leaving([]int{a.Rank}) == nil {
			c.report(a.Rank, "names: %v is the error of a rank that has left, and this one has not", o)
		}
	case o.Lost != nil:
		if leaving(o.Lost) == nil {
			c.report(a.Rank, "names: %v names rank %d of the job, which has not left", o, o.Lost[0])
		}
	case o.By != nil:
		// A worker may fail after it has left: package dist tells its peers why.
		if l := leaving(o.By); l == nil || l.Way != Abort && c.accounts[o.By[0]].Way != Fail {
			c.report(a.Rank, "names: %v names rank %d of the job, which has not failed", o, o.By[0])
		}
	case slices.Contains(o.Left, o.From):
		for _, r := range o.Left {
			if leaving([]int{r}) == nil {
				c.report(a.Rank, "names: %v names rank %d of the job, which has not left", o, r)
			}
		}
	case o.Late != nil:
		for _, r := range o.Late {
			if a.isStalled { // it has missed what came meanwhile
				break
			}
			if r < 0 || !c.accounts[r].isStalled && c.accounts[r].Way != Kill && !c.waitedElsewhere(r, o) {
				c.report(a.Rank, "names: %v names rank %d of the job, which was not late", o, r)
			}
		}

	case o.Refuse != nil:
		for _, r := range o.Refuse {
			if r < 0 || !c.hasGivenUpBefore(r, o) {
				c.report(a.Rank, "names: %v names rank %d of the job, which had no reason to reject the call", o, r)
			}
		}
	case o.Other && c.isLate() && c.wasGivenUp(o):
	case o.Queued && o.Kind == Call && c.isLate() && (a.isStalled || o.idle > 0 || c.waitedElsewhere(a.Rank, o)):
	default:
		c.report(a.Rank, "names: %v is not an error of a departure", o)
	}
}

// hasGivenUpBefore reports whether a rank has given up a call in the group of o, while it waited
// for an earlier one: it rejects it when its turn has come. A message may be awaited later than it
// was started, and so may fail with the group by a later call.
func (c *checking) hasGivenUpBefore(rank int, o *Outcome) bool {
	return c.isLate() && slices.ContainsFunc(c.accounts[rank].Outcomes, func(other Outcome) bool {
		return other.Queued && other.Kind == Call && other.Group == o.Group && (o.Kind != Call || other.Event <= o.Event)
	})
}

// wasGivenUp reports whether one of the two ranks of a message has waited in vain with an earlier
// one of them: it came later, or never, and with the same tag the next is taken for it.
func (c *checking) wasGivenUp(o *Outcome) bool {
	return slices.ContainsFunc(slices.Concat(c.accounts[o.From].Outcomes, c.accounts[o.To].Outcomes), func(other Outcome) bool {
		isBefore := other.Event < o.Event || other.Event == o.Event && other.Index <= o.Index
		return other.Late != nil && isBefore && other.Kind != Call && other.Group == o.Group && other.From == o.From && other.To == o.To
	})
}

// waitedElsewhere reports whether a rank has waited for something else than o, while some rank
// stood still: it was late because another rank was.
func (c *checking) waitedElsewhere(rank int, o *Outcome) bool {
	return c.isLate() && (c.accounts[rank].wasHeldUp || slices.ContainsFunc(c.accounts[rank].Outcomes, func(other Outcome) bool {
		isSame := other.Kind == Call && other.Event == o.Event && other.Group == o.Group
		return !isSame && (other.Late != nil || other.idle > 0)
	}))
}

// calls checks the collectives of a group: all ranks make a call in the same event.
func (c *checking) calls(g *group) {
	byEvent := map[int]map[int]*Outcome{} // event -> rank
	for _, rank := range g.members {
		for i := range c.accounts[rank].Outcomes {
			o := &c.accounts[rank].Outcomes[i]
			if o.Kind != Call || o.Group != g.number {
				continue
			}
			if byEvent[o.Event] == nil {
				byEvent[o.Event] = map[int]*Outcome{}
			}
			byEvent[o.Event][rank] = o
		}
	}
	whole := true              // so far all ranks have made all calls, and none has left during one
	failed := map[int]string{} // by rank: why it makes no further call
	for _, event := range slices.Sorted(maps.Keys(byEvent)) {
		of := byEvent[event]
		for _, rank := range g.members {
			o := of[rank]
			if o == nil && c.accounts[rank].Way != Kill { // a process may die after the call, before it notes it
				failed[rank] = cmp.Or(failed[rank], fmt.Sprintf("did not make the call of event %d", event))
			}
			whole = whole && o != nil && c.untorn(rank, o)
		}

		for _, rank := range g.members {
			o := of[rank]
			if o == nil {
				continue
			}
			for _, peer := range g.members {
				if o.ok() && failed[peer] != "" {
					c.report(rank, "ran alone: %v succeeded, and rank %d %s", o, peer, failed[peer])
				}
			}

			if !o.ok() && whole && c.endedBefore(of, rank) {
				c.report(rank, "torn: %v failed, and all ranks made it, and none left before its own had ended", o)
			}
		}
		for rank, o := range of {
			if !o.ok() && failed[rank] == "" {
				failed[rank] = fmt.Sprintf("had failed in event %d, %s", event, o.Err)
			}
		}
	}
}

// endedBefore reports whether the parts of all other ranks in a call had ended before any rank
// stood still.
func (c *checking) endedBefore(of map[int]*Outcome, rank int) bool {
	for other, o := range of {
		if other != rank && (o.At > c.stalledAt() || c.accounts[other].cutOff != nil) { // its last packets may be lost
			return false
		}
	}
	return true
}

// dropped reports whether a call or a send was not made because the rank's worker returned
// without an error, although no worker had failed. A failed worker ends the contexts of the
// others.
func (c *checking) dropped(rank int, o *Outcome) bool {
	if l := c.accounts[rank].Left[o.Group]; !o.Closed || l == nil || l.Way != Return || o.Kind != Call && o.Kind != Send {
		return false
	}
	return !slices.ContainsFunc(c.accounts, func(a *Account) bool { return a.Way == Fail })
}

// untorn reports whether a rank left a call's group, if at all, after its part of the call
// had ended.
func (c *checking) untorn(rank int, o *Outcome) bool {
	l := c.accounts[rank].Left[o.Group]
	return l == nil || l.Way == Return && !o.Closed || o.At <= l.Started
}

// messages checks that messages arrive that were sent before their sender left.
func (c *checking) messages() {
	type key struct{ event, index, group, from, to int }
	sent := map[key]*Outcome{}
	each := func(kind Kind, f func(a *Account, k key, o *Outcome)) {
		for _, a := range c.accounts {
			for i := range a.Outcomes {
				if o := &a.Outcomes[i]; o.Kind == kind {
					f(a, key{o.Event, o.Index, o.Group, o.From, o.To}, o)
				}
			}
		}
	}

	each(Send, func(_ *Account, k key, o *Outcome) { sent[k] = o })
	each(Recv, func(a *Account, k key, o *Outcome) {
		l := a.Left[o.Group]
		// A receive from any rank ends when one has died, whichever would have sent.
		ofAnother := o.Lost != nil && o.Lost[0] != o.From && o.Lost[0] >= 0 && c.accounts[o.Lost[0]].Way == Kill
		if s := sent[k]; s != nil && s.ok() && !o.ok() && !o.Failed && !ofAnother && !c.mayMiss(a, s, o) && (l == nil || o.At <= l.Started) {
			c.report(a.Rank, "lost message: %v failed, the send succeeded, and the group lives", o)
		}
	})
}

// mayMiss reports whether a receive may have ended before a message came that was sent: a rank
// stood still, either one of the two or before the message was sent.
func (c *checking) mayMiss(receiver *Account, sent, received *Outcome) bool {
	return c.isLate() && (receiver.isStalled || c.accounts[received.From].isStalled || sent.At > c.stalledAt())
}
