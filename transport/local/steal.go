package local

// bodies is the progress of a rank in a call whose bodies any rank may run, in a group that
// polls. A rank claims a body before it runs it, normally its own. A rank that fell asleep
// while it waited takes many times longer to wake up than its body takes, so ranks that are
// awake run the bodies of sleepers.
type bodies struct {
	hasAsked bool // the rank has tried to claim its own body
	hasOwn   bool // and has got it
	running  int  // the rank whose body runs, or noRank
	next     int  // the next rank to look at
}

const noRank = -1

// claimAsleep returns this rank's own body first, then bodies of ranks that sleep.
func (ep *endpoint) claimAsleep() (rank int, ok bool) {
	b := &ep.bodies
	if !b.hasAsked {
		b.hasAsked = true
		b.hasOwn = ep.claim(ep.Rank())
		b.running = ep.Rank()
		return ep.Rank(), b.hasOwn
	}
	if b.running != ep.Rank() {
		ep.Done(b.running)
	}

	for ; b.hasOwn && b.next < ep.Size(); b.next++ {
		if r := b.next; ep.IsAsleep(r) && ep.claim(r) {
			b.running = r
			return r, true
		}
	}
	b.running = noRank
	return 0, false
}

// claim claims a rank's body in the current call. A rank whose own body another rank has claimed
// runs no bodies: it counts as done as soon as its body was run. (syncmodel: claimsAreCAS)
func (ep *endpoint) claim(rank int) bool {
	word := &ep.group.claimed[rank]
	last := word.Load()
	return last < ep.seq && word.CompareAndSwap(last, ep.seq)
}

// awaitBodies waits until all bodies were run. This rank counts as done only now, although it ran
// its own body first: until here it may have touched other ranks' memory. (syncmodel:
// stealThenDone)
func (ep *endpoint) awaitBodies(failed bool) error {
	if failed {
		return nil
	}
	if ep.bodies.hasOwn {
		ep.Done(ep.Rank())
	}
	return ep.AwaitDone()
}
