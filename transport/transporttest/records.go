package transporttest

import (
	"bytes"

	"github.com/goccl/goccl/transport"
)

// records checks endpoints that are Recorders; others have nothing to show.
func records(h *harness, n int) {
	h.runGroup(func(g *group) {
		if _, ok := g.ranks[0].Endpoint.(transport.Recorder); !ok {
			return
		}

		all := make([]transport.Records, n)
		g.run(func(r *rank) {
			var err error
			all[r.number], err = r.Endpoint.(transport.Recorder).Records()
			failIf(err)
			r.checkParts(all[r.number])

			r.writePart(all[r.number])
			r.exchangePayloads()
			r.checkWritten(all[r.number])
			r.exchangePayloads()
		})
		g.checkAfterLeaving(all, n-1)
	})
}

// checkParts fails unless the rank sees the parts of all ranks of its node, and its part is zero.
func (r *rank) checkParts(records transport.Records) {
	for rank := range r.size {
		part := records.Part(rank)
		if r.group.areApart(r.number, rank) {
			if part != nil {
				fail("rank %d sees the part of rank %d, which is on another node", r.number, rank)
			}
			continue
		}
		if len(part) < 4*4096 || len(part)%4096 != 0 {
			fail("rank %d: the part of rank %d has %d bytes", r.number, rank, len(part))
		}
	}

	if part := records.Part(r.number); bytes.Count(part, []byte{0}) != len(part) {
		fail("rank %d: its part is not zero at first", r.number)
	}
	if records.Vanished("a panic") != nil {
		fail("rank %d: Vanished takes any panic for its own", r.number)
	}
}

// writePart fills the rank's part with its number plus one.
func (r *rank) writePart(records transport.Records) {
	part := records.Part(r.number)
	for i := range part {
		part[i] = byte(r.number + 1)
	}
}

// checkWritten fails unless the rank sees what all ranks of its node have written.
func (r *rank) checkWritten(records transport.Records) {
	for rank := range r.size {
		if r.group.areApart(r.number, rank) {
			continue
		}
		part := records.Part(rank)
		if n := bytes.Count(part, []byte{byte(rank + 1)}); n != len(part) {
			fail("rank %d sees %d of %d bytes that rank %d has written", r.number, n, len(part), rank)
		}
	}
}

// checkAfterLeaving lets a rank leave, and fails unless the others still see what it has written.
func (g *group) checkAfterLeaving(all []transport.Records, leaver int) {
	for i, records := range all {
		if records.Job() != all[0].Job() || records.Job() == "" {
			fail("rank %d is in job %q, rank 0 in %q", i, records.Job(), all[0].Job())
		}
	}
	failIf(g.ranks[leaver].Close())
	failIf(g.ranks[leaver].Free())
	for i, records := range all {
		if !g.areApart(i, leaver) && records.Part(leaver)[100] != byte(leaver+1) {
			fail("rank %d no longer sees what rank %d has written", i, leaver)
		}
	}

	for _, records := range all {
		failIf(records.Free())
	}
}

// areApart reports whether ranks are on different nodes.
func (g *group) areApart(rank, other int) bool {
	placed, ok := g.ranks[rank].Endpoint.(transport.Nodes)
	return ok && placed.Nodes()[rank] != placed.Nodes()[other]
}
