package local

// bodies is where a rank of a group that polls is in a shared call. Each body is
// claimed before it is run: a rank's own by itself, as a rule, but one that has fallen
// asleep while it waited for others takes many times longer to wake up than its body
// takes, so those who are awake run it.
type bodies struct {
	asked   bool // whether the rank has tried to claim its own body,
	own     bool // and got it
	running int  // whose body runs, or nobody
	next    int  // the next rank to look at
}

const noRank = -1

// claimAsleep hands out this rank's own body, and then those of ranks that sleep.
func (ep *endpoint) claimAsleep() (rank int, ok bool) {
	b := &ep.bodies
	if !b.asked {
		b.asked = true
		b.own = ep.claim(ep.Rank())
		b.running = ep.Rank()
		return ep.Rank(), b.own
	}
	if b.running != ep.Rank() {
		ep.Done(b.running)
	}
	for ; b.own && b.next < ep.Size(); b.next++ {
		if r := b.next; ep.Asleep(r) && ep.claim(r) {
			b.running = r
			return r, true
		}
	}
	b.running = noRank
	return 0, false
}

// claim claims a rank's body in the current call. A rank whose own was claimed by
// another takes none: it counts as done as soon as that one was run. Rule claimsAreCAS.
func (ep *endpoint) claim(rank int) bool {
	word := &ep.group.claimed[rank]
	last := word.Load()
	return last < ep.seq && word.CompareAndSwap(last, ep.seq)
}

// awaitBodies waits until all bodies were run. This rank's own was before those of
// others, but it counts as done only now: until here it touches the others' memory. Rule
// stealThenDone.
func (ep *endpoint) awaitBodies(failed bool) error {
	if failed {
		return nil
	}
	if ep.bodies.own {
		ep.Done(ep.Rank())
	}
	return ep.AwaitDone()
}
