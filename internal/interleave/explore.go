//go:build interleave

package interleave

// Explore calls run with options for one order of steps after the other, until there are no more
// with at most so many preemptions, or run reports false. It returns how many orders those are, and
// options for the one for which run has reported false.
//
// A preemption is a switch from a goroutine that could have gone on. Bugs that need few are found
// in far fewer orders than there are (Musuvathi and Qadeer, "Iterative context bounding for
// systematic testing of multithreaded programs", PLDI 2007).
func Explore(preemptions int, run func(Options) (Result, bool)) (orders int, failed *Options) {
	x := &explorer{}
	for {
		x.next, x.preemptions = 0, preemptions
		orders++
		r, isRight := run(Options{explorer: x, IsRecorded: true})
		if !isRight {
			return orders, &Options{Choices: r.Choices}
		}
		if !x.advance() {
			return orders, nil
		}
	}
}

// explorer takes the orders of a program one after the other, depth first.
type explorer struct {
	branches    []branch // where the present order had more than one way to go on
	next        int      // of branches
	preemptions int      // that are left to this order
}

// branch is a point of an order at which there are several ways to go on.
type branch struct{ taken, ways int }

// advance prepares the next order. It reports false if there is none.
func (x *explorer) advance() bool {
	for n := x.next; n > 0; n-- {
		if b := &x.branches[n-1]; b.taken+1 < b.ways {
			b.taken++
			x.clear(n)
			return true
		}
	}
	return false
}

func (x *explorer) clear(from int) {
	for i := from; i < len(x.branches); i++ {
		x.branches[i] = branch{}
	}
}

// take returns the way to go on at the next branch.
//
//go:norace
func (x *explorer) take(ways int) int {
	if ways == 1 {
		return 0
	}
	x.branches = grow(x.branches, x.next)
	b := &x.branches[x.next]
	b.ways = ways
	x.next++
	return b.taken
}

//go:norace
func (x *explorer) choose(s *scheduler, me *task) (*task, event) {
	ready := s.findReady()
	canGoOn := me != nil && me.isReady()
	switch {
	case len(ready) == 0:
		return x.chooseIdle(s)
	case !canGoOn:
		return ready[x.take(len(ready))], goOn
	case x.preemptions == 0:
		return me, goOn
	}

	way := x.take(len(ready))
	if way == 0 {
		return me, goOn
	}

	x.preemptions--
	for _, t := range ready {
		if t != me {
			way--
		}
		if way == 0 {
			return t, goOn
		}
	}
	return me, goOn
}

//go:norace
func (x *explorer) chooseIdle(s *scheduler) (*task, event) {
	polls := 0
	for i := 0; i < s.count; i++ {
		if t := s.tasks[i]; t != nil && t.pollsInVain() {
			polls++
		}
	}
	return s.chooseIdle(x.take(max(polls, 1)))
}
