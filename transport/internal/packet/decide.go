package packet

// The ranks of a group have one failure, and agree on whether the group was formed. The coordinator
// decides: the lowest rank that is still there and replies. A rank that proposes waits for its
// decision within the member's patience; then, and if the coordinator goes, it decides for itself
// and sends that to the others.

// isResponsive reports whether a rank can still reply, and its process has replied or sent
// something of late.
func (g *group) isResponsive(rank int) bool {
	return g.isThere(rank) && !g.process.unresponsive[g.processOf[rank]].Load()
}

// isThere reports whether a rank can still reply.
func (g *group) isThere(rank int) bool {
	return !g.sync.HasDeparted(rank) && !g.process.isDead(g.processOf[rank])
}

// coordinator returns the rank that decides.
func (g *group) coordinator() int {
	for rank := range g.processOf {
		if rank == g.rank || g.isResponsive(rank) {
			return rank
		}
	}
	return g.rank
}

// proposeToCoordinator asks the coordinator to decide, until isDecided returns true. If it does not
// in time, decide decides for this rank.
func (g *group) proposeToCoordinator(h head, body []byte, isDecided func() bool, decide func()) {
	if g.saidGoodbye.Load() { // no packet is sent any more
		decide()
		return
	}

	asked := -1 // the coordinator that was asked
	g.process.waitAtMost(g.member.Patience(), func() bool {
		if isDecided() {
			return true
		}
		coordinator := g.coordinator()
		if coordinator == g.rank {
			for g.process.poll() { // others may have decided while this process was stopped
			}
			decide()
			return true
		}

		if coordinator != asked {
			asked = coordinator
			g.sendTo(coordinator, h, body)
		}
		return false
	})
	if !isDecided() {
		decide()
	}
}

// ProposeFailure implements groupsync.Remote.
func (r *rest) ProposeFailure(rank int) {
	g := r.group
	hasFailed := func() bool { return g.sync.FailedBy() >= 0 }
	g.proposeToCoordinator(head{kind: kindPropose}, encodeFailure(g.causes.Load(rank)), hasFailed, func() { g.decideFailure(rank) })
	// A rank that enters a call from now on must know, whatever way the coordinator's packet
	// takes.
	by := g.sync.FailedBy()
	g.sending.Lock()
	g.sendToAll(head{kind: kindFailed, number: uint64(by)}, encodeFailure(g.causes.Load(by)))
	g.sending.Unlock()
	r.CatchUp()
}

// decideFailure makes the failure of a rank the group's, unless it has one, and sends it to
// all ranks.
func (g *group) decideFailure(by int) {
	g.sending.Lock()
	defer g.sending.Unlock()
	if f := g.causes.Load(by); g.setFailed(by) {
		g.sendToAll(head{kind: kindFailed, number: uint64(by)}, encodeFailure(f))
	}
}

// handleFailure handles a failure that a rank proposes, or that is decided.
func (g *group) handleFailure(h head, body []byte) error {
	f, err := decodeFailure(body, len(g.processOf))
	by := int(h.number)
	if h.kind == kindPropose {
		by = h.from
	}
	if err != nil || by < 0 || by >= len(g.processOf) {
		return errBadPacket
	}

	if by != g.rank && g.sync.FailedBy() != by {
		g.causes.Store(by, f)
	}
	if h.kind == kindPropose {
		g.decideFailure(by)
		// The rank that proposes may not know of another failure, if its rank could send it to none.
		if first := g.sync.FailedBy(); first != by {
			g.sendTo(by, head{kind: kindFailed, number: uint64(first)}, encodeFailure(g.causes.Load(first)))
		}
	} else {
		g.setFailed(by)
	}
	return nil
}

// ProposeVerdict implements groupsync.Remote.
func (r *rest) ProposeVerdict(isFormed bool) {
	g := r.group
	g.proposeToCoordinator(head{kind: kindConclude, flag: isFormed}, nil, g.sync.Decided, func() { g.decideVerdict(isFormed) })
}

// decideVerdict decides whether the group was formed, unless that is decided, and sends it to
// all ranks.
func (g *group) decideVerdict(isFormed bool) {
	g.sending.Lock()
	defer g.sending.Unlock()
	if g.sync.SetVerdict(isFormed) {
		g.sendToAll(head{kind: kindVerdict, flag: isFormed}, nil)
	}
}
