package packet

import (
	"context"
	"slices"
)

// handleProcessPacket handles a packet that belongs to no group: another process has found
// that one has died, or says goodbye.
func (p *Process) handleProcessPacket(from int, h head) {
	switch {
	case h.kind == kindGoodbye:
		p.saidGoodbye[from].Store(true)
	case h.kind == kindDead && h.number < uint64(p.wire.Size()) && p.deaths.markDead(int(h.number)):
		p.noticeDeaths()
	}
}

// SayGoodbye sends all other processes this one's last packet, and waits until it has theirs, or
// ctx ends. Then nothing is on its way to this process.
func (p *Process) SayGoodbye(ctx context.Context) {
	others := p.Others()
	p.sendToProcesses(head{kind: kindGoodbye}, others)
	p.waitUntil(ctx, func() bool {
		p.reportDeaths(p.deaths.findDead()) // tend no longer does, once all endpoints are closed
		return !slices.ContainsFunc(others, func(rank int) bool { return !p.saidGoodbye[rank].Load() && !p.isDead(rank) })
	})
}

// reportDeaths reports to all other processes which ones have died.
func (p *Process) reportDeaths(died []int) {
	for _, rank := range died {
		p.sendToProcesses(head{kind: kindDead, number: uint64(rank)}, p.Others())
	}
}

// Others returns the ranks of all other processes that have not died.
func (p *Process) Others() (ranks []int) {
	for rank := range p.wire.Size() {
		if rank != p.wire.Rank() && !p.isDead(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// sendToProcesses sends a packet that belongs to no group to processes.
func (p *Process) sendToProcesses(h head, to []int) {
	for _, rank := range to {
		b := p.wire.Packet(headBytes, 0)
		h.encode(b)
		if err := p.wire.Send(rank, b, Body{}); err != nil {
			p.handleWireError(err)
		}
	}
}
