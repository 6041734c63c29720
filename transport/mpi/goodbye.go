//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"slices"
)

// handleProcessPacket handles a packet that belongs to no group: another process has found
// that one has died, or says goodbye.
func (p *process) handleProcessPacket(from int, h head) {
	switch {
	case h.kind == kindGoodbye:
		p.saidGoodbye[from].Store(true)
	case h.kind == kindDead && h.number < uint64(p.wire.size()) && p.deaths.markDead(int(h.number)):
		p.noticeDeaths()
	}
}

// sayGoodbye sends all other processes this one's last packet, and waits until it has theirs, or
// ctx ends. Then nothing is on its way to this process.
func (p *process) sayGoodbye(ctx context.Context) {
	others := p.otherRanks()
	p.sendToProcesses(head{kind: kindGoodbye}, others)
	p.waitUntil(ctx, func() bool {
		p.reportDeaths(p.deaths.findDead()) // tend no longer does, once all endpoints are closed
		return !slices.ContainsFunc(others, func(rank int) bool { return !p.saidGoodbye[rank].Load() && !p.isDead(rank) })
	})
}

// reportDeaths reports to all other processes which ones have died.
func (p *process) reportDeaths(died []int) {
	for _, rank := range died {
		p.sendToProcesses(head{kind: kindDead, number: uint64(rank)}, p.otherRanks())
	}
}

// otherRanks returns the ranks of all other processes that have not died.
func (p *process) otherRanks() (ranks []int) {
	for rank := range p.wire.size() {
		if rank != p.wire.rank() && !p.isDead(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// sendToProcesses sends a packet that belongs to no group to processes.
func (p *process) sendToProcesses(h head, to []int) {
	for _, rank := range to {
		b := p.wire.packet(headBytes)
		h.encode(b)
		if err := p.wire.send(rank, b); err != nil {
			p.handleWireError(err)
		}
	}
}
