//go:build interleave

package interleave

import "time"

// event is what happens next.
type event uint8

const (
	goOn         event = iota // a task goes on
	endPoll                   // a task that polls in vain goes on, and is told to stop polling
	advanceClock              // the clock advances to what is due next
	standstill                // nothing can happen
)

// chooser chooses what happens next. me is the running task; nil: it has ended. With goOn and
// endPoll it returns the task.
type chooser interface {
	choose(s *scheduler, me *task) (*task, event)
}

// walk chooses at random. At each step the running task goes on, except once in so many.
type walk struct {
	random   random
	switches int // once in so many steps another task goes on
	clock    int // once in so many steps the clock advances; 0: only when no task can go on
	polls    int // once in so many switches a poll ends
}

//go:norace
func newWalk(seed uint64, isLate bool) *walk {
	w := &walk{random: random(seed)}
	w.switches = 1 << w.random.draw(6)
	w.clock = w.random.drawClock(isLate)
	w.polls = 1 << (2 + w.random.draw(6))
	return w
}

// drawClock draws once in how many steps the clock advances.
//
//go:norace
func (r *random) drawClock(isLate bool) int {
	if !isLate {
		return 0
	}
	return 64 << r.draw(6)
}

//go:norace
func (w *walk) choose(s *scheduler, me *task) (*task, event) {
	if w.random.isOnce(w.clock) && s.calendar.canAdvance() {
		return nil, advanceClock
	}
	canGoOn := me != nil && me.isReady()
	if canGoOn && !w.random.isOnce(w.switches) {
		return me, goOn
	}

	if w.random.isOnce(w.polls) {
		if t := s.findPoll(w.random.draw(most)); t != nil {
			return t, endPoll
		}
	}
	ready := s.findReady()
	if len(ready) == 0 {
		return s.chooseIdle(w.random.draw(most))
	}
	return ready[w.random.draw(len(ready))], goOn
}

// chooseIdle chooses where no task can go on.
//
//go:norace
func (s *scheduler) chooseIdle(n int) (*task, event) {
	if t := s.findPoll(n); t != nil {
		return t, endPoll
	}
	if s.isOutOfPatience() {
		s.fail(&Finding{Kind: Overdue})
		return nil, standstill
	}
	if s.calendar.canAdvance() || s.calendar.canWait(s.picks) {
		return nil, advanceClock
	}
	return nil, standstill
}

// isOutOfPatience reports whether it takes too long until something is due.
//
//go:norace
func (s *scheduler) isOutOfPatience() bool {
	if s.options.Patience == 0 || !s.calendar.endedAt.IsZero() {
		return false
	}
	at, ok := s.calendar.next()
	return !ok || time.Until(at) > s.options.Patience
}

// steady lets the running task go on for as long as it can, and then the one with the lowest
// number. choices are what it does otherwise, in their order.
type steady struct {
	choices Choices
	next    int
}

//go:norace
func (c *steady) choose(s *scheduler, me *task) (*task, event) {
	for c.next < len(c.choices) && c.choices[c.next].Pick <= s.picks {
		choice := c.choices[c.next]
		c.next++
		if choice.Pick < s.picks {
			continue
		}
		if t, e, ok := s.apply(choice.Task); ok {
			return t, e
		}
	}
	return s.chooseSteadily(me)
}

//go:norace
func (s *scheduler) chooseSteadily(me *task) (*task, event) {
	if me != nil && me.isReady() {
		return me, goOn
	}
	if ready := s.findReady(); len(ready) > 0 {
		return ready[0], goOn
	}
	return s.chooseIdle(0)
}

// apply returns what a choice means, if it is possible.
//
//go:norace
func (s *scheduler) apply(number int) (t *task, e event, ok bool) {
	if number == advances {
		return nil, advanceClock, s.calendar.canAdvance() || s.calendar.canWait(s.picks)
	}
	e = goOn
	if number <= endsPoll {
		number, e = endsPoll-number, endPoll
	}
	if number >= s.count || s.tasks[number] == nil {
		return nil, e, false
	}

	t = s.tasks[number]
	if e == endPoll {
		return t, e, t.isPolling && !t.isKilled
	}
	return t, e, t.isReady()
}

// priorities lets the task with the highest priority go on, and lowers the running task's at a few
// steps (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized scheduler with
// probabilistic guarantees of finding bugs", ASPLOS 2010). A bug that takes d changes is found in
// one of n*k^(d-1) seeds, with n tasks and k steps.
type priorities struct {
	random  random
	changes [4]int // the picks at which the running task becomes the last
	lowest  uint32
	clock   int // once in so many steps the clock advances; 0: only when no task can go on
}

//go:norace
func newPriorities(seed uint64, picks int, isLate bool) *priorities {
	p := &priorities{random: random(seed), lowest: 1 << 16}
	p.clock = p.random.drawClock(isLate)
	for i := range p.changes {
		p.changes[i] = p.random.draw(picks)
	}
	return p
}

//go:norace
func (p *priorities) choose(s *scheduler, me *task) (*task, event) {
	if p.random.isOnce(p.clock) && s.calendar.canAdvance() {
		return nil, advanceClock
	}
	for i := range p.changes {
		if p.changes[i] == s.picks && me != nil {
			p.lowest--
			me.priority = p.lowest
		}
	}

	var best *task
	for i := 0; i < s.count; i++ {
		t := s.tasks[i]
		if t == nil {
			continue
		}

		if t.priority == 0 {
			t.priority = 1<<16 + uint32(p.random.draw(1<<16))
		}
		if (best == nil || t.priority > best.priority) && t.isReady() {
			best = t
		}
	}
	if best == nil {
		return s.chooseIdle(p.random.draw(most))
	}
	return best, goOn
}

// recorder notes in what another chooser differs from steady.
type recorder struct {
	chooser chooser
	choices Choices
	end     int
	pick    int // the present one
	idle    int // how often the clock has advanced at it as steady's would have
}

//go:norace
func (r *recorder) choose(s *scheduler, me *task) (*task, event) {
	usual, usually := s.chooseSteadily(me)
	t, e := r.chooser.choose(s, me)
	if r.pick != s.picks {
		r.pick, r.idle = s.picks, 0
	}
	if t == usual && e == usually {
		if e == advanceClock {
			r.idle++
		}
		return t, e
	}

	for ; r.idle > 0; r.idle-- { // they come before this one
		r.add(Choice{Pick: s.picks, Task: advances})
	}
	choice := Choice{Pick: s.picks, Task: advances}
	switch {
	case e == endPoll:
		choice.Task = endsPoll - t.number
	case e == goOn:
		choice.Task = t.number
	}
	r.add(choice)
	return t, e
}

//go:norace
func (r *recorder) add(c Choice) {
	r.choices = grow(r.choices, r.end)
	r.choices[r.end] = c
	r.end++
}
